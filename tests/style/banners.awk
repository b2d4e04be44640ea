# banners.awk - which titles of sections do not end at the margin?
#
#     awk -v margin=120 -f tests/style/banners.awk FILE...
#
# A title stands between dashes, four before it and at least five behind it.  Characters count, not bytes: the
# continuation bytes of UTF-8 are taken away.  So LC_ALL must be C.

/^(\/\*|#) ---- .* ------*( \*\/)?$/ {
    gsub(/[\200-\277]/, "")
    if (length != margin)
        print FILENAME ":" FNR ": the title's line ends at column " length ", expected " margin
}
