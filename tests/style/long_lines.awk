# long_lines.awk - which lines have too many characters?
#
#     awk -v most=120 -f tests/style/long_lines.awk FILE...
#
# Characters count, not bytes: the continuation bytes of UTF-8 are taken away.  So LC_ALL must be C.
#
# A line of 121 characters          gives
#
#     /* this line is ... */            src/main.c:7: 121 characters, at most 120 are allowed

{ gsub(/[\200-\277]/, "") }
length > most { print FILENAME ":" FNR ": " length " characters, at most " most " are allowed" }
