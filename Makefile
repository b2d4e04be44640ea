# Trainyard's Makefile.  `make` builds ./yard, `make demo` shows it, `make test` tests it, `make help` lists the rest.
#
# From top to bottom:
#
#     what is built                what the program consists of
#     with which flags             the compiler's words, and SDL2
#     how                          the rules; all but ./yard itself is made in build/
#     to see it run, and read it   the targets that you type: this group and the next three are those of `make help`
#     to test it                       how tests are built, too
#     to work on labs
#     to keep the tree in order
#     for make itself              which files depend on which headers, which targets are no files
#     tests/maintain.mk            targets for those who change Trainyard itself
#
#     make V=1        shows the commands
#     make WERROR=1   takes every warning for an error, as .ci/run does; a newer compiler warns of what ours does not

# ---- what is built ---------------------------------------------------------------------------------------------------

#     src/**/*.c           compiled to build/src/**/*.o  |
#     cl/, README, pages   embedded.c, compiled          |  linked to ./yard, or without main.o and with a test's
#     pictures in src      PICTURE.png.c, compiled       |  own object to build/tests/test_NAME
#     the folders of src   modules.c, compiled           |

# RUN is how a command calls YARD: ./yard, or /tmp/yard.
BUILD = build
YARD  = yard
RUN   = $(if $(filter /%,$(YARD)),$(YARD),./$(YARD))
.DEFAULT_GOAL = $(YARD)

# SHARED is the folder for what is the same in every build: C files made from texts and pictures, stamps of packages,
# gdb's script.  A build outside this tree has its own, since the tree may be read-only.
#
#     BUILD     build    build/clang    /tmp/x    ../x
#     SHARED    build    build          /tmp/x    ../x
SHARED = $(if $(filter /% ../%,$(BUILD)),$(BUILD),build)

# Every .c file below src/ belongs to the program, but those of folders that WITHOUT="view plot" leaves out.
# modules.mk takes these out, and makes the table of the folders, which is TABLE.
SOURCES := $(sort $(wildcard src/*.c src/*/*/*.c))
include src/make/modules.mk

PICTURES = $(wildcard $(addsuffix *.png,$(sort $(dir $(SOURCES)))))
OBJECTS  = $(SOURCES:%.c=$(BUILD)/%.o) $(BUILD)/embedded.o $(PICTURES:%=$(BUILD)/%.o) $(BUILD)/$(TABLE).o

# ---- with which flags ------------------------------------------------------------------------------------------------

# The default flags are for reading along in a debugger and for results that do not depend on the compiler's mood:
# symbols and frame pointers, no fast-math, no contraction of a*b+c (the code says fma where it wants one operation).
OPTIMISE = -O2 -g
CPPFLAGS = -I. -Isrc -D_GNU_SOURCE= -DCL_TARGET_OPENCL_VERSION=120
CFLAGS   = -std=c11 $(OPTIMISE) -fno-omit-frame-pointer -ffp-contract=off -pthread
WARNINGS = -Wall -Wextra -Wshadow -Wconversion $(if $(filter 1,$(WERROR)),-Werror)
COMPILE  = $(CC) $(CPPFLAGS) $(CFLAGS) $(WARNINGS)
OPENCL   = -lOpenCL
LDLIBS   = $(OPENCL) -lclblast -lz -ljansson -lm -ldl $(SDL2)

ifeq ($(shell uname),Darwin)
PREFIX   := $(or $(CONDA_PREFIX),$(shell brew --prefix 2>/dev/null))
CPPFLAGS += -DCL_SILENCE_DEPRECATION -I$(PREFIX)/include
LDFLAGS  += -L$(PREFIX)/lib -Wl,-rpath,$(PREFIX)/lib
OPENCL    = $(if $(CONDA_PREFIX),-lOpenCL,-framework OpenCL)
endif

# Only the viewer's window needs SDL2: without it, pictures remain.  sdl2-config is asked wherever SDL2 or WINDOW is
# used, and not once at the start, as this make may install SDL2 before it compiles.  So only the files that have an
# #ifdef HAVE_SDL2 are compiled with WINDOW.
SDL2   = $(shell sdl2-config --libs 2>/dev/null)
WINDOW = $(if $(SDL2),-DHAVE_SDL2 $(shell sdl2-config --cflags 2>/dev/null))
WINDOW_FILES := $(shell grep -ls HAVE_SDL2 $(SOURCES) tests/unit/*/*.c)

# ---- how -------------------------------------------------------------------------------------------------------------

# Commands begin with $(Q) or @, and are not shown; with V=1 those with $(Q) are.
Q = $(if $(V),,@)

# As many jobs as there are cores; a make in a make shares those of the outer one.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell getconf _NPROCESSORS_ONLN)
endif

# The target becomes what a command prints, as a whole, and keeps its time where that is as before.
IF_CHANGED = src/make/if_changed.sh $@

# The file LINKED holds the value of WITHOUT that YARD was linked with, so that another value links it anew.  It is
# build/linked-yard, and build/linked--tmp-yard where YARD is /tmp/yard.
LINKED = $(BUILD)/linked-$(subst /,-,$(YARD))
$(YARD): $(OBJECTS) $(LINKED) | $(SHARED)/yard-gdb.py
	@echo "link     $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(OBJECTS) $(LDLIBS)

$(LINKED): FORCE
	@$(IF_CHANGED) echo '$(WITHOUT)'

# Three rules say where the .c file of an object is; the third one, for tests, stands below.  All have this recipe.
define COMPILE_OBJECT
	@echo "compile  $<"
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(if $(filter $<,$(WINDOW_FILES)),$(WINDOW)) -MMD -MP -c -o $@ $<
endef

# build/src/main.o is made from src/main.c, and build/embedded.o from build/embedded.c.
$(BUILD)/%.o: %.c $(BUILD)/flags | $(SHARED)/packages
	$(COMPILE_OBJECT)

$(BUILD)/%.o: $(SHARED)/%.c $(BUILD)/flags | $(SHARED)/packages
	$(COMPILE_OBJECT)

# The optimizer's loop on the host is worth vectors; no math-errno: sqrtf sets none.
$(BUILD)/src/trainer/model/adamw_host.o: OPTIMISE += -O3 -fno-math-errno

# This file changes when the flags do, those for the window too, and then everything is compiled again.
$(BUILD)/flags: FORCE | $(SHARED)/packages
	@$(IF_CHANGED) echo '$(COMPILE) $(WINDOW)'

# The kernels and the texts of --data stories and self travel inside the program.  The folders are prerequisites too,
# since their time changes when a file comes or goes.
KERNELS := $(sort $(wildcard cl/*.cl cl/*.h))
TEXT    := $(sort README.md $(wildcard src/*.[ch] src/*/*/*.[ch] tutorials/*.md tutorials/*/*.md) $(KERNELS))
EMBED    = src/make/embed.awk
$(SHARED)/embedded.c: $(KERNELS) data/stories.txt $(TEXT) $(EMBED) $(filter-out ./,$(sort $(dir $(KERNELS) $(TEXT))))
	@echo "embed    $(words $(KERNELS)) kernels, $(words $(TEXT)) texts"
	$(Q)LC_ALL=C $(IF_CHANGED) awk -f $(EMBED) $(KERNELS) -- data/stories.txt $(TEXT) && touch $@

# So does a picture among the sources: letters.png is embedded_letters.
EMBED_BYTES = src/make/embed_bytes.awk
$(PICTURES:%=$(SHARED)/%.c): $(SHARED)/%.c: % $(EMBED_BYTES)
	$(Q)$(IF_CHANGED) awk -v file=$< -v name=embedded_$(basename $(notdir $<)) -f $(EMBED_BYTES) && touch $@

$(SHARED)/$(TABLE).c: FORCE
	@$(IF_CHANGED) $(MODULES) -v as=table $(REGISTERED)

# gdb loads it by its name, which src/gdb_script.c writes into the program.
$(SHARED)/yard-gdb.py: src/gdb/yard.py
	@mkdir -p $(@D)
	@cp $< $@

# Packages are looked for once, and again after `make clean` or `make deps`.  The other stamps wait for the first.
PACKAGES = CC='$(CC)' CPPFLAGS='$(CPPFLAGS)' LDFLAGS='$(LDFLAGS)' src/make/packages.sh
TEST_NEEDS = tests patch
$(SHARED)/packages:
	@$(PACKAGES) build --optional window
	@$(PACKAGES) --name $(TEST_NEEDS)
	@mkdir -p $(@D)
	@touch $@

$(SHARED)/packages-tests: | $(SHARED)/packages
	@$(PACKAGES) $(TEST_NEEDS)
	@touch $@

# A target below is for you to type.  What stands after its ## is its sentence in `make help`, under the title of its
# group.

# ---- to see it run, and read it --------------------------------------------------------------------------------------

core: ## Builds ./yard-core: the trainer alone, without the folders of planning, techniques and tools.
	@$(MAKE) --no-print-directory YARD=yard-core WITHOUT=all

STEPS = 1500
DEMO  = $(BUILD)/demo
demo: $(YARD) ## Trains a small GPT on stories, draws its trace, lets it tell a story: 1 to 2 minutes.
	$(RUN) train --model nano --steps $(STEPS) --lr 2e-3 --trace $(DEMO).trace --save $(DEMO) \
	    --log $(DEMO).jsonl --val-every 300 --val-batches 40 --sample-tokens 0
	$(RUN) trace summary $(DEMO).trace
	$(RUN) view $(DEMO).trace --step $(STEPS) --png $(DEMO).png
	$(RUN) plot $(DEMO).jsonl
	$(RUN) sample --from $(DEMO) --count 400
	@echo '$(DEMO).png shows the last step.'
	@echo '$(if $(SDL2),$(RUN) view $(DEMO).trace opens it in a window.,A window wants SDL2: make deps installs it.)'

bench: $(YARD) ## Measures this machine: FMA peak, copies, GEMM, training.
	$(RUN) bench --model char

debug: ## Builds ./yard-debug with -O0 -g3, for gdb.
	@$(MAKE) --no-print-directory BUILD=build/debug YARD=yard-debug OPTIMISE='-O0 -g3'

SPINE = tutorials/reference-code.md
spine: ## Writes the lines that tutorials/reference-code.md leads through into build/spine, a file for each part.
	@rm -rf $(BUILD)/spine
	@mkdir -p $(BUILD)/spine
	@awk -v to=$(BUILD)/spine -f src/make/to_read.awk -f src/make/reading_copy.awk $(SPINE)

# ---- to test it ------------------------------------------------------------------------------------------------------

# Tests that are programs, and their objects: build/tests/test_swap, build/tests/test_swap.o.  fuzz is no test.
UNIT_FILES   = $(sort $(notdir $(wildcard tests/unit/*/*.c)))
UNIT_OBJECTS = $(UNIT_FILES:%.c=$(BUILD)/tests/%.o)
TESTS        = $(patsubst %.c,$(BUILD)/tests/%,$(filter test_%,$(UNIT_FILES)))
# What each of them is linked with besides the program, whose main() it has not.  Scripts build the shims.
SUPPORT      = $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/main.c tests/support/shim_%.c,$(wildcard tests/support/*.c)))
SUPPORT_MAIN = $(BUILD)/tests/support/main.o
WITHOUT_MAIN = $(filter-out %/main.o %/gdb_script.o,$(OBJECTS))
# Tests that are scripts:
#
#     SCRIPTS     those of `make test`; IN_PARTS is one of them
#     IN_PARTS    one of which `make test` runs a part and `make check` the rest, as they do with every program
#     LONGER      all others, which only `make check` runs
#
# A right change of src/ must pass `make test`: so a script that compares the sources with other files, such as labs.sh
# with the labs' patches, is in LONGER.
IN_PARTS = tests/pages/walk.sh
SCRIPTS  = $(wildcard tests/scripts/errors*.sh) tests/scripts/installs.sh tests/scripts/plot.sh tests/pages/pages.sh \
           $(IN_PARTS)
LONGER   = $(filter-out $(SCRIPTS),$(sort $(wildcard tests/scripts/*.sh tests/style/*.sh tests/pages/*.sh)))
ALL_TESTS = $(TESTS) $(SCRIPTS) $(LONGER)

# `make test` runs all tests that one needs to trust a build, or with T=swap those that have "swap" in their names.
#
#                    runs the tests                which of their checks (tests/lib/run.sh)
#     make test      CHOSEN = TESTS SCRIPTS        PART = test
#     make test T=x  CHOSEN = NAMED                PART = all
#     make check     TESTS IN_PARTS LONGER         check
#
# NAMED looks at names alone, not at folders: T=plan has test_swap_plans, but no other test of tests/unit/planning.
T     ?=
NAMED  = $(strip $(foreach test,$(ALL_TESTS),$(if $(findstring $T,$(notdir $(test))),$(test))))
CHOSEN = $(if $T,$(NAMED),$(TESTS) $(SCRIPTS))
PART   = $(if $T,all,test)

# A test is a program of its own: its file, what tests/support has, and all of the program but main.  By vpath make
# finds test_swap.c in one of the folders of tests/unit.  In the last of these rules, % is a whole path:
#
#     build/tests/test_swap       is linked from build/tests/test_swap.o, SUPPORT, WITHOUT_MAIN and SUPPORT_MAIN
vpath %.c $(wildcard tests/unit/*)
$(UNIT_OBJECTS): $(BUILD)/tests/%.o: %.c $(BUILD)/flags
	$(COMPILE_OBJECT)

$(TESTS): $(SUPPORT_MAIN)
$(TESTS) $(BUILD)/tests/fuzz: %: %.o $(SUPPORT) $(WITHOUT_MAIN)
	@echo "link     $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

$(UNIT_OBJECTS) $(SUPPORT) $(SUPPORT_MAIN): | $(SHARED)/packages-tests

test: $(YARD) $(TESTS) ## Runs what one needs to trust a build and a change: 3 minutes.  T=swap: all tests of that name.
	@[ -n "$(CHOSEN)" ] || { echo "no test has $(T) in its name; there are: $(notdir $(ALL_TESTS))"; exit 2; }
	@YARD=$(RUN) YARD_TESTS=$(PART) tests/lib/run.sh $(BUILD)/tests $(CHOSEN)

tests: test # else make finds the folder of that name, and nothing to do

check: $(BUILD)/tests/passed ## Runs all other tests: 12 minutes.  `make test` comes first, where it has not passed yet.
	@YARD=$(RUN) YARD_TESTS=check tests/lib/run.sh $(BUILD)/tests $(TESTS) $(IN_PARTS) $(LONGER)

# run.sh makes this file where all of `make test` have passed.  It is older than what has changed since.
READ_BY_TESTS = $(wildcard tests/*.mk tests/*/* tests/pages/marks/* tests/pages/marks/*/* data/* data/*/* \
    tutorials/* tutorials/*/* src/make/* src/gallery/* src/gdb/* README.md)
$(BUILD)/tests/passed: $(YARD) $(TESTS) $(READ_BY_TESTS)
	@$(MAKE) --no-print-directory test T=

# No scripts, which would take too long with these sanitizers; but all checks of the programs, as `make check` has them.
ASAN = $(MAKE) --no-print-directory BUILD=build/asan YARD=yard-asan SCRIPTS= PART=all \
       OPTIMISE='-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined'
# The + tells make that this line calls another make, which shares its jobs.  It cannot see that itself, since the word
# $(MAKE) stands in a variable.
asan: ## Builds ./yard-asan with AddressSanitizer and UBSan, and runs the test programs with them.
	+@$(ASAN) test

# ---- to work on labs -------------------------------------------------------------------------------------------------

lab: $(YARD) ## Makes a working copy for lab N= in build/labs/N, with a task in it: see tutorials/labs.
	@SEED=$(SEED) tutorials/labs/lab.sh prepare $(N)

grade: ## Gives lab N= (or TREE=) its points.  SEED= draws other hidden cases; JSON=1 adds a line for autograders.
	@JSON='$(JSON)' SEED=$(SEED) tutorials/labs/lab.sh grade $(N) $(TREE)

report: ## Writes build/report-N.html for lab N= (or TREE=), to hand in: numbers predicted, simulated and measured.
	@tutorials/labs/lab.sh report $(N) $(TREE)

# ---- to keep the tree in order ---------------------------------------------------------------------------------------

deps: ## Looks for the packages again, and installs what is missing.
	@rm -f build/packages* $(SHARED)/packages*
	@$(PACKAGES) --install build $(TEST_NEEDS) window

C_FILES = $(wildcard src/*.[ch] src/*/*/*.[ch] tests/support/*.[ch] tests/unit/*/*.c)
format: ## Puts the sources into the project's layout, with clang-format 14.
	@echo "format   $(words $(C_FILES)) files"
	$(Q)clang-format -i $(C_FILES)

PROGRAMS = yard yard-core yard-debug yard-asan yard-tsan
clean: ## Removes build/ and the programs here.  A folder of BUILD= may have other files: it stays.
	rm -rf build $(PROGRAMS)

help: ## Prints this list.
	@awk -f src/make/help.awk Makefile tests/maintain.mk

# ---- for make itself -------------------------------------------------------------------------------------------------

# The compiler writes beside each object which headers it read.
-include $(patsubst %.o,%.d,$(OBJECTS) $(UNIT_OBJECTS) $(SUPPORT) $(SUPPORT_MAIN))

.PHONY: core demo bench debug spine test tests check asan lab grade report deps format clean help FORCE
.DELETE_ON_ERROR: # a file that is half made would look new
.SUFFIXES:        # none of make's own rules: those above are all

# ---- targets for those who change Trainyard itself -------------------------------------------------------------------

include tests/maintain.mk
