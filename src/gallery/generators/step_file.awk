# step_file.awk - a step file that was written by hand, on other links.
#
#     make step_file list=data/papers/zenflow.txt rate=32e9 [disk=12.8e9]
#
# It reads the file `list` and prints it, with links of `rate` bytes per second, and a disk of `disk` if it has one.
# If it has no link, every device gets one, before the first tensor:
#
#     link gpu up 32e9

function print_links(   i) { # of the devices that have been read
    for (i = 1; i <= devices; i++) {
        print "link " device[i] " up " value["rate"]
        print "link " device[i] " down " value["rate"]
    }
}

function step_file(   text, part, links) {
    while ((getline text < value["list"]) > 0) {
        split(text, part)
        if (part[1] == "device") {
            devices++
            device[devices] = part[2]
        }
        if (part[1] == "link") {
            links++
            text = "link " part[2] " " part[3] " " value["rate"]
        }
        if (part[1] == "disk" && value["disk"] != "")
            text = "disk " value["disk"]
        if (part[1] == "tensor" && !links) {
            print_links()
            links = 1
        }
        print text
    }
    if (!devices)
        refuse("step file " value["list"])
}
