# skipped.awk - what a test could not check, and why: a line for each check that its log says was skipped.
#
#     awk -f skipped.awk LOG
#
# A script's line  ok 3 - the window # SKIP no screen  gives  "      skipped: the window: no screen".  With cmocka, the
# reason is the line before.
/# SKIP/ {
    said = $0
    sub(/.*ok [0-9]+ (- )?/, "", said)
    sub(/ # SKIP +/, ": ", said)
    sub(/ *# SKIP */, "", said)
    if (before !~ /ok [0-9]|^#|^1\.\.|^$/)
        said = said ": " before
    print "      skipped: " said
}
{ before = $0 }
