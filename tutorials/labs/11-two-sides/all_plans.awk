# all_plans.awk - prints a line of letters, such as DCL, for each plan that there is for the updates of so many layers.
#
#     awk -v layers=3 -f all_plans.awk
#
# carry_out.awk says what the letters mean.

BEGIN {
    for (plan = 0; plan < 3 ^ layers; plan++) { # its letters are its digits to the base of 3
        letters = ""
        rest = plan
        while (length(letters) < layers) {
            letters = letters substr("DCL", rest % 3 + 1, 1)
            rest = int(rest / 3)
        }
        print letters
    }
}
