# copies.sh - makes and builds copies of the tree, for students and for proofs of the labs.  lab.sh reads it.
#
#     copy_tree TO              a copy of the tree, without what git ignores and what graders use
#     apply TREE PATCH          changes it by a patch of a lab
#     take_back TREE PATCH      undoes that
#     give LAB TREE             writes the files that a student is given
#     forget TREE PATCH         removes from it what was built of the sources that the patch changes
#     build TREE                fails with the compiler's words in $TMP/make

copy_tree() { # TO
    rm -rf "$1"
    # shellcheck disable=SC2046,SC2010 # files of the project, whose names have no spaces
    (cd "$TOP" && copy_files "$1" $(ls -d ./* .clang-format .gitignore | grep -v '^\./build$\|^\./yard'))
    find "$1"/tutorials/labs/[0-9]* -type f ! -name README.md -exec rm {} +
    find "$1"/tutorials/labs/[0-9]* -type d -empty -delete
    rm -f "$1/tests/scripts/labs.sh"
    (cd "$TOP" && copy_build "$1")
}

without_marks() { # PATCH: without its first line, if that is "loses: PARTS"
    sed '1{/^loses:/d;}' "$1"
}

apply() { # TREE PATCH
    command -v patch >/dev/null || die "patch is missing: make deps installs it"
    without_marks "$2" | (cd "$1" && patch -s -p1 --no-backup-if-mismatch) ||
        die "$2 does not apply: the tree has changed; make it anew"
}

take_back() { # TREE PATCH
    without_marks "$2" | (cd "$1" && patch -s -R -p1) || die "$2 does not go back"
}

give() { # LAB TREE: the files that a student is given
    for script in "$1"/*.*.sh; do
        [ -f "$script" ] || continue # the lab has none
        file=$2/$(basename "$script" .sh)
        (cd "$TOP" && SEED=$SEED YARD=$TOP/yard sh "$script") >"$file" || die "$script fails"
    done
    write_blanks "$1" "$2"
}

# Removes what tells a student what the patch has taken out: the objects of the sources that it changes, and the texts
# of all sources, which ./yard carries.  The patch's line  +++ b/src/trainer/step/depend.c  gives
# src/trainer/step/depend.
forget() { # TREE PATCH
    rm -f "$1"/build/embedded.*
    sed -n 's|^+++ b/\(src/.*\)\.c$|\1|p' "$2" | while read -r source; do
        rm -f "$1/build/$source.o"
    done
}

build() { # TREE
    (cd "$1" && make -j2 >"$TMP/make" 2>&1)
}
