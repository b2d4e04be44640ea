# help.awk - the list that `make help` prints: each target with its sentence, under the title of its group.
#
#     awk -f src/make/help.awk Makefile tests/maintain.mk
#
# The lines                                            give
#
#     # ---- to see it run -------------                   to see it run
#
#     demo: $(YARD) ## Trains a small GPT.                 make demo          Trains a small GPT.
#
# A title is printed before the first target of its group, so a group without targets has none.  The first lines say
# what `make` does without a target, and which variables it knows.

BEGIN {
    print "make               Builds ./yard."
    print "                   WITHOUT=\"view plot\" leaves two folders of src out, and so for all but the trainer's;"
    print "                   V=1 shows the commands; WERROR=1 takes warnings for errors; BUILD=DIR builds elsewhere."
}

/^# ---- / {
    title = $0
    gsub(/^# -+ | -+$/, "", title)
}
/^[a-z-]+:.*## / {
    if (title != "")
        print "\n" title "\n"
    title = ""
    target = $0
    sub(/:.*/, "", target)
    sentence = $0
    sub(/.*## /, "", sentence)
    printf "make %-13s %s\n", target, sentence
}
