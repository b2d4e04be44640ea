# proving.sh - proves that graders give the points that they should, and makes the labs' patches anew.  lab.sh reads it.
#
#     prove_lab N            builds and grades lab N's starter, its solution and each wrong solution.  It prints
#
#                                ok - lab 02-edges: the starter: 1/13
#                                ok - lab 02-edges: the solution: 13/13
#                                ok - lab 02-edges: one-reader.patch: 1/13
#
#     rebase LAB OLD NEW     the lab's patches applied to commit OLD: they become patches of NEW

# ---- points ----------------------------------------------------------------------------------------------------------

prove_lab() { # N: prints a line "ok" or "not ok" for each tree, and fails if one is not; sets: lab, name, tree, bad
    lab=$(folder_of "$1") || exit
    name=${lab##*/}
    tree=$TMP/tree$1
    bad= # yes: something gets other points than it should
    copy_tree "$tree"
    apply "$tree" "$lab/starter.patch"
    write_blanks "$lab" "$tree"
    fill_blanks "$tree"
    expect "the starter" "$(loses "$lab/starter.patch")"
    if [ -f "$lab/solution.patch" ]; then
        apply "$tree" "$lab/solution.patch"
    else
        take_back "$tree" "$lab/starter.patch"
    fi
    expect "the solution" ""
    for patch in "$lab"/wrong/*.patch; do
        apply "$tree" "$patch"
        expect "${patch##*/}" "$(loses "$patch")"
        look_up "${patch##*/}"
        take_back "$tree" "$patch"
    done
    rm -rf "$tree"
    [ -z "$bad" ]
}

loses() { # PATCH: the numbers of the parts that do not get their points with it, as its first line has them
    sed -n '1s/^loses: *//p' "$1"
}

# PARTS are the numbers of those that must lose their points; one in brackets may lose them, by this CPU's vectors or by
# the clock.  With PARTS "1 (3)", lost_parts() may print " 1" or " 1 3".
expect() { # WHAT PARTS: of $tree; sets: bad
    grade "$lab" "$tree" >"$TMP/grade"
    must=
    may=
    for part in $2; do
        case $part in
        '('*) may="$may $part" ;;
        *) must="$must $part" ;;
        esac
    done
    found=
    for part in $(lost_parts); do
        case $may in
        *"($part)"*) ;;
        *) found="$found $part" ;;
        esac
    done
    if [ "$found" = "$must" ]; then
        echo "ok - lab $name: $1: $(score)"
    else
        echo "not ok - lab $name: $1 loses parts '$(lost_parts | sed 's/^ //')', should lose '$2'"
        sed 's/^/#   /' "$TMP/grade"
        bad=yes
    fi
}

# The row  | one-reader.patch | Only the last reader counts. | `within the step: FAIL` |  gives its last words.
look_up() { # PATCH: does the grader say what lecturer.md quotes?; sets: bad
    says=$(sed -n "s/^| $1 |.*| \`\(.*\)\` |$/\1/p" "$lab/lecturer.md")
    [ -n "$says" ] || return 0
    grep -qF -e "$says" "$TMP/grade" && return
    echo "not ok - lab $name: lecturer.md says of $1: '$says'; the grader does not"
    bad=yes
}

# ---- patches ---------------------------------------------------------------------------------------------------------

in_both() { # WORDS...: git, in the tree $TMP/both
    git -C "$TMP/both" "$@"
}

# A patch becomes a commit on the old tree, git merges that into the new one, and the difference is the new patch.
remake() { # PATCH OLD NEW: the commits to begin from become $made_old and $made_new; sets: made_old, made_new
    in_both checkout -q "$2" || exit 1
    apply "$TMP/both" "$1"
    in_both add -A && in_both commit -q --allow-empty -m lab || exit 1
    made_old=$(in_both rev-parse HEAD)
    in_both checkout -q "$3" || exit 1
    in_both cherry-pick --allow-empty "$made_old" >"$TMP/out" 2>&1 ||
        die "$1: git cannot merge it; make it by hand: $(cat "$TMP/out")"
    made_new=$(in_both rev-parse HEAD)
    {
        sed '/^--- /,$d' "$1" # the words above the changes stay
        in_both diff "$3" "$made_new" | grep -vE '^(diff --git|index|new file mode|deleted file mode) '
    } >"$TMP/patch"
    if ! cmp -s "$TMP/patch" "$1"; then
        cp "$TMP/patch" "$1"
        echo "$1"
    fi
}

rebase() { # LAB OLD NEW: prints the names of patches that have changed
    remake "$1/starter.patch" "$2" "$3"
    from=$2
    to=$3
    if [ -f "$1/solution.patch" ]; then
        remake "$1/solution.patch" "$made_old" "$made_new"
        from=$made_old
        to=$made_new
    fi
    for patch in "$1"/wrong/*.patch; do
        remake "$patch" "$from" "$to"
    done
}
