# maintain.mk - targets for those who change and publish Trainyard itself.  The Makefile reads it, and `make help` lists
# them.
#
# A student needs none of them.  .ci/run, which every change must pass, draws one of the searches for each commit: tests
# that find more the longer they run.

# ---- searches: tests that find more the longer they run --------------------------------------------------------------

# Tests that run no kernels.  A name that is no test ends `make drivers`, since it may be the old name of one.  (A lab's
# copy has few tests, so that other targets do not look.)
RUN_NO_KERNELS := $(patsubst %,test_%,array data data_formats data_windows error hash limits llmc options plot publish \
                  random rate safetensors simulate stories text tokenizer view_growing view_input view_pictures \
                  view_rows)
NO_TESTS       := $(filter-out $(UNIT_FILES:%.c=%),$(RUN_NO_KERNELS))
$(if $(and $(filter drivers,$(MAKECMDGOALS)),$(NO_TESTS)),$(error tests/maintain.mk: there is no $(NO_TESTS)))
WITHOUT_KERNELS = $(RUN_NO_KERNELS:%=$(BUILD)/tests/%)
DRIVER_TESTS = $(filter-out $(WITHOUT_KERNELS),$(if $(T),$(filter $(TESTS),$(CHOSEN)),$(TESTS)))
drivers: $(YARD) $(DRIVER_TESTS) ## Runs tests, or those of T=, on Intel's and Mesa's drivers, and as on a GPU.
	@YARD=$(RUN) tests/machines/drivers.sh $(DRIVER_TESTS)

kills: N = 100
kills: $(YARD) $(BUILD)/tests/test_kills ## Kills training at N= moments and resumes it: every bit as if not killed.
	@YARD=$(RUN) YARD_CASES=$(N) SEED=$(or $(SEED),1) $(BUILD)/tests/test_kills

SECONDS = 60
FILES   = 1000000
fuzz: ## Gives damaged files of all formats to the readers, under ASan: a minute, or SECONDS=, FILES=, SEED=.
	+@$(ASAN) build/asan/tests/fuzz
	@ASAN_OPTIONS=abort_on_error=1:detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096 \
	    UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1 build/asan/tests/fuzz $(SECONDS) $(FILES) $(or $(SEED),1)

# The tests in which threads meet.  Without setarch the loader may put a mapping where gcc's runtime wants its own.
FIXED_ADDRESSES := $(shell setarch -R true 2>/dev/null && echo setarch -R)
# restart.sh is not among them: this runtime runs the handler of a signal only after waitpid() has returned, which with
# --restart is when the training has ended.
# ThreadSanitizer makes test_snaprun ten times slower, and a busy machine once more: so each test has an hour.
THREADED = depend depend_random execute pace snaprun
tsan: ## Builds ./yard-tsan with ThreadSanitizer, and runs the tests of threads and signals with it.
	@TEST_TIMEOUT=3600 $(FIXED_ADDRESSES) $(MAKE) --no-print-directory BUILD=build/tsan YARD=yard-tsan PART=all \
	    SCRIPTS=tests/scripts/process.sh TESTS='$(THREADED:%=build/tsan/tests/test_%)' test \
	    OPTIMISE='-O1 -g -fsanitize=thread -Wno-tsan'

# What .ci/run has time for in each change.  A driver keeps memory until the program ends, so the training looks for no
# leaks.
SHORT_ASAN = edit place
asan-short: ## Builds ./yard-asan, runs two test programs and a training with many techniques with it.
	+@$(ASAN) TESTS='$(SHORT_ASAN:%=build/asan/tests/test_%)' test
	@rm -rf build/asan/short.snap build/asan/short.trace
	ASAN_OPTIONS=detect_leaks=0 ./yard-asan train --model tiny -d 0:0/2 --mesh dp=2 --zero 3 --overlap all-cpu \
	    --recompute full --swap auto --clip 0 --snapshot build/asan/short.snap --trace build/asan/short.trace --steps 9

oclgrind: $(YARD) | $(SHARED)/packages-oclgrind ## Runs all kernels under oclgrind: races, stray accesses.
	@tests/lib/run.sh $(BUILD)/tests tests/scripts/oclgrind.sh

$(SHARED)/packages-oclgrind: | $(SHARED)/packages
	@$(PACKAGES) oclgrind
	@touch $@

labs-check: $(YARD) ## Proves the labs: starters, solutions and wrong solutions get the points that they should.
	@tutorials/labs/lab.sh check

# ---- other machines --------------------------------------------------------------------------------------------------

gpu: ## Writes what the first GPU, or DEVICE=P:D, does with it: build/gpu-report.txt, in 9 minutes.
	@YARD=$(RUN) DEVICE='$(DEVICE)' MAKE='$(MAKE_COMMAND)' tests/machines/gpu.sh
gpu-pack: ## Packs what a GPU's machine without packages and network lacks: build/gpu-kit, to copy there.
	@MAKE='$(MAKE_COMMAND)' tests/machines/gpu_kit.sh

RELEASE = trixie
distro: ## Runs the README's commands in a bare Debian RELEASE=, with DOCKER=1 the Dockerfile's: 10 minutes, as root.
	@DOCKER='$(DOCKER)' QUICK='$(QUICK)' tests/machines/distro.sh $(RELEASE)

# ---- predictions -----------------------------------------------------------------------------------------------------

periods: $(YARD) ## Simulates some hundred plans: are steps as short as those in tests/data/periods.txt?
	@YARD=$(RUN) tests/scripts/periods.sh

gallery: $(YARD) ## Draws papers' schedules, with their formulas and what is simulated: build/gallery/index.html.
	@YARD=$(RUN) src/gallery/gallery.sh page $(BUILD)/gallery

papers: $(YARD) ## Draws six papers on offload and checkpoints, on the links of HARDWARE= too: build/papers/index.html.
	@YARD=$(RUN) HARDWARE='$(HARDWARE)' src/gallery/gallery.sh papers $(BUILD)/papers

# ---- the sources -----------------------------------------------------------------------------------------------------

tidy: $(SHARED)/embedded.c ## Lets clang-tidy read the sources.
	clang-tidy --quiet $(SOURCES) -- $(CPPFLAGS) $(WINDOW) -std=c11

format-check: ## Fails when `make format` would change something.
	@clang-format --dry-run -Werror $(C_FILES)

counts: ## Writes how many lines the sources have into README.md and tutorials/reference-code.md.
	@mkdir -p $(BUILD)
	@for page in README.md tutorials/reference-code.md; do \
	    awk -v fill=1 -f src/make/to_read.awk -f tests/pages/counts.awk $$page >$(BUILD)/counts && \
	    cp $(BUILD)/counts $$page || exit; \
	done

modules: ## Prints in which sequence the folders stand in their table, and where passes run.
	@$(MODULES) -v as=modules $(REGISTERED)

.PHONY: drivers kills fuzz tsan asan-short oclgrind labs-check gpu gpu-pack distro periods gallery papers
.PHONY: tidy format-check counts modules
