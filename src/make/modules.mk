# modules.mk - the table of the program's folders, and WITHOUT, which leaves some out.  The Makefile reads it.
#
# Folders register themselves: each has one file with a line `const struct module module_NAME` (module.h), and
# modules.awk writes the table of these structs.
#
#     SOURCES     all .c files of the program; here those are taken out that WITHOUT names
#     TABLE       the name of the table's file, without .c

REGISTERED := $(shell grep -l '^const struct module module_' $(SOURCES))
MODULES     = awk -v without='$(WITHOUT)' -f src/make/modules.awk

# WITHOUT="view plot" leaves two folders out, and those that need them; WITHOUT=all leaves the trainer alone.  The table
# is build/modules.c, or build/modules-view-plot.c without these two.
WITHOUT =
NOTHING =
SPACE   = $(NOTHING) $(NOTHING)
TABLE   = modules$(subst $(SPACE),,$(WITHOUT:%=-%))

ifneq ($(strip $(WITHOUT)),)

# src/tools/view and the like; where a name is unknown, awk has said so and fails.
LEFT_OUT := $(shell $(MODULES) -v as=folders $(REGISTERED) || echo unknown)
ifeq ($(LEFT_OUT),unknown)
$(error see above)
endif
SOURCES := $(filter-out $(LEFT_OUT:=/%),$(SOURCES))

# A sentence on the folders that go along, since they need one that was named.
GO_ALONG := $(shell $(MODULES) -v as=note $(REGISTERED))
ifneq ($(GO_ALONG),)
$(info $(GO_ALONG))
endif

ifneq ($(filter test tests check kills drivers asan tsan,$(MAKECMDGOALS)),)
$(error tests need every folder: leave WITHOUT out)
endif

endif
