# maintain.mk - targets for those who change and publish Trainyard itself.  The Makefile reads it; `make help` lists it.
#
# A student needs none of them.  .ci/run, which every change must pass, draws one of the searches for each commit: tests
# that find more the longer they run.

# ---- searches ------------------------------------------------------------------------------------------------------

# Tests that run no kernels.
WITHOUT_KERNELS = $(patsubst %,$(BUILD)/tests/test_%,base data file stories simulate view_growing view_input view_pictures view_rows plot)
DRIVER_TESTS = $(filter-out $(WITHOUT_KERNELS),$(TESTS))
drivers: $(YARD) $(DRIVER_TESTS) ## run the tests on Intel's and Mesa's drivers, fetched into build/, and as on a GPU
	@YARD=./$(YARD) tests/machines/drivers.sh $(DRIVER_TESTS)

kills: N = 100
kills: $(YARD) $(BUILD)/tests/test_kills ## kill training at N random moments, and resume: to the bit as if not killed
	@YARD=./$(YARD) KILLS=$(N) SEED=$(or $(SEED),1) $(BUILD)/tests/test_kills

SECONDS = 60
FILES   = 1000000
fuzz: ## mutated files of all formats through the readers under ASan: a minute, or SECONDS=, FILES=, SEED=
	+@$(ASAN) build/asan/tests/fuzz
	@ASAN_OPTIONS=abort_on_error=1:detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096 \
	    UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1 build/asan/tests/fuzz $(SECONDS) $(FILES) $(or $(SEED),1)

# The tests in which threads meet.  Without setarch the loader may put a mapping where gcc's runtime wants its own.
tsan: ## build ./yard-tsan with ThreadSanitizer, and run the tests of threads and signals with it
	@$(FIXED) $(MAKE) --no-print-directory BUILD=build/tsan YARD=yard-tsan SCRIPTS=tests/scripts/process.sh PART=all \
	    TESTS='build/tsan/tests/test_schedule build/tsan/tests/test_pace build/tsan/tests/test_snaprun' test \
	    OPTIMISE='-O1 -g -fsanitize=thread -Wno-tsan'
FIXED := $(shell setarch -R true 2>/dev/null && echo setarch -R)

oclgrind: $(YARD) | $(SHARED)/packages-oclgrind ## run every kernel under oclgrind: races, stray accesses
	@tests/run/run.sh build/tests tests/scripts/oclgrind.sh

$(SHARED)/packages-oclgrind: | $(SHARED)/packages
	@$(PACKAGES) oclgrind
	@touch $@

labs-check: $(YARD) ## prove the labs: starters, solutions and wrong solutions get the points they should
	@tutorials/labs/lab.sh check

# ---- other machines ------------------------------------------------------------------------------------------------

gpu: ## what a GPU does with it, in 9 minutes, as build/gpu-report.txt: the first GPU, or DEVICE=P:D
	@YARD=./$(YARD) DEVICE='$(DEVICE)' MAKE='$(MAKE_COMMAND)' tests/machines/gpu.sh
gpu-pack: ## what a GPU's machine without packages and network lacks, as a folder build/gpu-kit to copy there
	@MAKE='$(MAKE_COMMAND)' tests/machines/gpu_kit.sh

RELEASE = trixie
distro: ## the README's commands in a bare Debian RELEASE=, or with DOCKER=1 as in the Dockerfile: 10 minutes, as root
	@DOCKER='$(DOCKER)' QUICK='$(QUICK)' tests/machines/distro.sh $(RELEASE)

# ---- predictions ---------------------------------------------------------------------------------------------------

periods: $(YARD) ## simulate some hundred plans: are steps as short as those written in tests/data/periods.txt?
	@YARD=./$(YARD) tests/scripts/periods.sh

gallery: $(YARD) ## papers' schedules as pictures, with their formulas and what is simulated: build/gallery/index.html
	@YARD=./$(YARD) data/gallery/gallery.sh page build/gallery

papers: $(YARD) ## six papers on offload and checkpoints, on the links of HARDWARE= too: build/papers/index.html
	@YARD=./$(YARD) HARDWARE='$(HARDWARE)' data/gallery/gallery.sh papers build/papers

# ---- the sources ---------------------------------------------------------------------------------------------------

tidy: $(SHARED)/embedded.c ## let clang-tidy read the sources
	clang-tidy --quiet $(SOURCES) -- $(CPPFLAGS) -std=c11

format-check: ## fail when `make format` would change something
	@clang-format --dry-run -Werror $(C_FILES)

counts: ## write into README.md and tutorials/reference-code.md how many lines the sources have, as pages.sh wants them
	@mkdir -p build
	@for page in README.md tutorials/reference-code.md; do \
	    awk -v fill=1 -f tests/pages/counts.awk $$page >build/counts && cp build/counts $$page || exit; \
	done

.PHONY: drivers kills fuzz tsan oclgrind labs-check gpu gpu-pack distro periods gallery papers tidy format-check counts
