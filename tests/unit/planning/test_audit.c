/* test_audit.c - a wrong declaration does not stay hidden.
 *
 * This test declares every access of every task of the training, evaluation and sampling lists in another way, one at a
 * time, and audits the task.  It checks that the audit finds an access that is missing from a declaration: at that
 * task, or at one that then reads what was lost.  It also checks that the audit finds a kernel that leaves elements
 * unwritten, and a host task that writes what it does not name.
 *
 * To see it fail: in audit.c, let others_problem() find nothing.
 */
#include "tests/support/support_lists.h"
#include "tests/support/support_schedule.h"
#include "tests/support/support_training.h"

#include "trainer/base/embedded.h"

#include <signal.h>
#include <strings.h>

/* ---- lists ------------------------------------------------------------------------------------------------------- */

enum { WARM_UP = 3 }; /* steps: then Adam's m and v are not zero any more */

/* A training on two devices that divide the work as `mesh` says. */
static struct trainer *open_mesh(const char *gemm, const char *mesh)
{
    struct settings *settings =
        parse_words("--layers 1 --heads 2 --channels 16 --seq-len 8 --batch 4 --micro-batch 1 -d 0:0x2 --serial");
    settings->kernels.gemm = strcmp(gemm, "own") == 0 ? GEMM_OWN : GEMM_CLBLAST;
    settings->mesh = mesh;
    if (mesh) { /* the upper half of the 256 bytes hardly occurs in the text: one rank would have all words */
        settings->data.tokens = "chars";
        settings->kernels.attention = ATTENTION_FLASH;
    }
    struct trainer *trainer = new_trainer(settings, ALL_LISTS | OPEN_DATA);
    trainer->extra.sample_position = 4;
    return trainer;
}

static struct trainer *open_trainer(const char *gemm) { return open_mesh(gemm, NULL); }

/* Whatever was done to the trainer before, iteration WARM_UP + 1 comes next, with the same state each time. */
static void start_again(struct trainer *trainer, struct list *list)
{
    begin_anew(trainer);
    for (uint32_t number = 1; list == trainer->train_list && number <= WARM_UP; number++)
        execute(list, number);
    drain(list);
}

/* ---- declaring otherwise ----------------------------------------------------------------------------------------- */

static const char *const mode_name[] = {"none", "read", "write", "both"};

struct tally {
    size_t at_task, at_reader, conservative, declared_twice, listed;
};

/* Mistakes that no audit can find, and why. */
static const struct exception {
    const char *task;
    enum access_mode is, said;
    const char *why;
} exceptions[] = {
    {.task = "report",
     .is = ACCESS_READ,
     .said = ACCESS_NONE,
     .why = "what it makes is no tensor: the host's record of the step"},
    {.task = "eval.report",
     .is = ACCESS_READ,
     .said = ACCESS_NONE,
     .why = "what it makes is no tensor: the host's sum of losses"},
};

static bool is_listed(const struct task *task, enum access_mode is, enum access_mode said)
{
    for (size_t i = 0; i < COUNT(exceptions); i++)
        if (strcmp(exceptions[i].task, task->name) == 0 && exceptions[i].is == is && exceptions[i].said == said)
            return true;
    return false;
}

/* The access that a task declares to the bytes of its access k, by all of its accesses. */
static enum access_mode declared(const struct task *task, int k)
{
    const struct tensor *tensor = task->accesses[k].tensor;
    unsigned mode = 0;
    for (int i = 0; i < task->n_accesses; i++)
        if (task->accesses[i].tensor->storage == tensor->storage && task->accesses[i].tensor->offset == tensor->offset)
            mode |= task->accesses[i].mode;
    return (enum access_mode)mode;
}

static struct task_flight flight; /* gets the times, which are not used here */

/* Audits the list from task i of the next iteration to the end of the one after it.  Returns what the audit says first,
 * or NULL. */
static struct problem *audit_from(struct audit *audit, struct list *list, size_t i, bool *at_once)
{
    uint32_t number = WARM_UP + 1;
    struct problem *problem = audit_task(audit, list->tasks[i], number, &flight);
    *at_once = problem != NULL;
    for (size_t n = i + 1; n < 2 * list->n && !problem; n++)
        problem = audit_task(audit, list->tasks[n % list->n], number + (n >= list->n), &flight);
    return problem;
}

/* Opens an audit in front of task i. */
static struct audit *audit_before(struct trainer *trainer, struct list *list, size_t i)
{
    start_again(trainer, list);
    struct audit *audit = open_audit(list);
    for (size_t k = 0; k < i; k++)
        assert_null(audit_task(audit, list->tasks[k], WARM_UP + 1, &flight));
    return audit;
}

/* Task i, which says less than is true since its access k `is` said to be something else.  true: found at once. */
static bool expect_found(struct audit *audit, struct list *list, size_t i, int k, enum access_mode is,
                         struct tally *tally)
{
    bool at_once;
    struct problem *problem = audit_from(audit, list, i, &at_once);
    const struct access *access = &list->tasks[i]->accesses[k];
    if (!problem && !is_listed(list->tasks[i], is, access->mode))
        test_failed("%s list, task %zu %s, tensor %s: %s said to be %s, and nobody notices\n", list->name, i,
                    list->tasks[i]->name, access->tensor->name, mode_name[is], mode_name[access->mode]);
    if (!problem)
        tally->listed++;
    else if (at_once)
        tally->at_task++;
    else
        tally->at_reader++;
    free(problem);
    return at_once;
}

/* Access k of task i, said to be `mode`.  The audit stands before task i, also afterwards. */
static void declare_otherwise(struct trainer *trainer, struct list *list, struct audit **audit, size_t i, int k,
                              enum access_mode mode, struct tally *tally)
{
    struct task *task = list->tasks[i];
    enum access_mode is = task->accesses[k].mode, before = declared(task, k);
    bool audited_on = false;
    task->accesses[k].mode = mode;
    if (declared(task, k) == before)
        tally->declared_twice++; /* by another argument */
    else if ((declared(task, k) & before) == before)
        tally->conservative++; /* more than is true: more edges, longer lives, the same values */
    else
        audited_on = !expect_found(*audit, list, i, k, is, tally);
    task->accesses[k].mode = is;
    if (audited_on) {
        close_audit(*audit);
        *audit = audit_before(trainer, list, i);
    }
}

/* A number for what a task declares.  Tasks of other ranks, micro-batches, layers and lists may have the same one. */
static uint64_t key_of_declarations(const struct task *task)
{
    uint64_t key = hash_bytes(task->name, strlen(task->name), (uint64_t)(task->action == ACT_KERNEL));
    for (int k = 0; k < task->n_accesses; k++)
        key = hash_bytes(&task->accesses[k].mode, sizeof task->accesses[k].mode, key);
    return key;
}

static struct {
    uint64_t *keys; /* of the tasks that have been audited */
    size_t n, cap;
} audited;

static bool is_audited(uint64_t key)
{
    for (size_t i = 0; i < audited.n; i++)
        if (audited.keys[i] == key)
            return true;
    return false;
}

static void note_audited(uint64_t key)
{
    GROW(audited.keys, audited.cap, audited.n + 1);
    audited.keys[audited.n++] = key;
}

/* Of all tasks that declare the same, the first one is audited. */
static void audit_all_declarations(struct trainer *trainer, struct list *list, struct tally *tally)
{
    struct audit *audit = audit_before(trainer, list, 0);
    for (size_t i = 0; i < list->n; i++) {
        uint64_t key = key_of_declarations(list->tasks[i]);
        bool skip = is_audited(key);
        if (!skip)
            note_audited(key);
        for (int k = 0; k < list->tasks[i]->n_accesses && !skip; k++)
            for (enum access_mode mode = ACCESS_NONE; mode <= ACCESS_BOTH; mode++)
                if (mode != list->tasks[i]->accesses[k].mode)
                    declare_otherwise(trainer, list, &audit, i, k, mode, tally);
        assert_null(audit_task(audit, list->tasks[i], WARM_UP + 1, &flight));
    }
    close_audit(audit);
}

TEST(every_declaration_matters)
{
    struct tally tally = {0};
    static const char *const ways[][2] = {{"own", NULL}, {"clblast", NULL}, {"own", "tp=2"}};
    for (size_t way = 0; way < COUNT(ways); way++) {
        struct trainer *trainer = open_mesh(ways[way][0], ways[way][1]);
        struct list *lists[] = {trainer->train_list, trainer->eval_list, trainer->sample_list};
        for (size_t i = 0; i < COUNT(lists); i++)
            audit_all_declarations(trainer, lists[i], &tally);
        free_trainer(trainer);
    }
    print_message("# %zu wrong declarations: %zu found at the task, %zu at a reader of what was lost, %zu listed;\n"
                  "# besides %zu that another argument makes good, %zu that declare more than is true\n",
                  tally.at_task + tally.at_reader + tally.listed, tally.at_task, tally.at_reader, tally.listed,
                  tally.declared_twice, tally.conservative);
    assert_above(tally.at_task, 500);
}

/* ---- which kernels there are ------------------------------------------------------------------------------------- */

/* Kernels that no list of this test has: bench.cl has those that are timed by themselves, and fill serves --zero 2 and
 * tests. */
static const char *const in_no_list[] = {"fma_peak", "copy", "fill"};

static bool runs_kernel(const struct list *list, const char *kernel)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->tasks[i]->action == ACT_KERNEL && strcmp(list->tasks[i]->kernel, kernel) == 0)
            return true;
    return false;
}

/* Finds the next line from `at` on that begins with KERNEL, or with the word `kernel` which that macro stands for, and
 * writes the function's name into `name`.  Returns the text from its `void` on; NULL: there is no further kernel. */
static const char *next_kernel(const char *at, char name[64])
{
    const char *line = strcasestr(at, "\nkernel ");
    if (!line)
        return NULL;
    const char *type = strstr(line, "void");
    if (!type || sscanf(type, "void %63[a-z_0-9]", name) != 1)
        test_failed("a kernel without a name:%.80s\n", line);
    return type;
}

static bool is_excepted(const char *kernel)
{
    for (size_t i = 0; i < COUNT(in_no_list); i++)
        if (strcmp(in_no_list[i], kernel) == 0)
            return true;
    return false;
}

LONG_TEST(every_kernel_is_in_a_list)
{
    struct trainer *own = open_trainer("own");
    struct trainer *clblast = open_trainer("clblast");
    struct trainer *cut = open_mesh("own", "tp=2");
    const struct list *lists[] = {own->train_list, own->eval_list, own->sample_list, clblast->train_list,
                                  cut->train_list};
    size_t n = 0, omitted = 0;
    for (const struct embedded_file *file = embedded_kernels; file->name; file++) {
        char name[64];
        for (const char *at = next_kernel(file->text, name); at; at = next_kernel(at, name)) {
            bool found = false;
            for (size_t i = 0; i < COUNT(lists); i++)
                found |= runs_kernel(lists[i], name);
            if (found == is_excepted(name))
                test_failed("kernel %s of cl/%s: %s\n", name, file->name, found ? "is in a list" : "is in no list");
            n++;
            if (!found)
                omitted++;
        }
    }
    assert_above(n, omitted);
    print_message("# %zu kernels, %zu of them in no list\n", n, omitted);
    assert_int_equal(omitted, COUNT(in_no_list));
    free_trainer(own);
    free_trainer(clblast);
    free_trainer(cut);
}

/* ---- what is written in secret ----------------------------------------------------------------------------------- */

static void audit_list(struct list *list)
{
    execution.serial = true;
    execution.serial_runner = &audit_runner;
    must(finish_lists(list->pool, &list, 1));
    for (uint32_t number = 1; number <= 2; number++)
        execute(list, number);
    drain(list);
}

CASE(half_written)
{
    struct list *list = new_list_on(open_one());
    struct tensor *first = new_array(list->pool, &list->pool->machine->devices[0], "first", 100, PERSISTENT);
    struct task *fill = add_fill(list, "fill", first, 1);
    fill->args[FILL_ELEMENTS].number = 60;
    audit_list(list);
}

static void scribble(void *tensor, const struct task *task, uint32_t iteration)
{
    (void)task;
    (void)iteration;
    memset(tensor_memory(tensor), 0, 16);
}

CASE(host_write)
{
    struct machine *machine = open_one();
    struct list *list = new_list_on(machine);
    struct pool *pool = list->pool;
    struct tensor *secret = new_array(pool, machine->host, "secret", 10, PERSISTENT),
                  *open = new_array(pool, machine->host, "open", 10, PERSISTENT);
    struct task *scribbler = add_host(list, machine->host->lanes[LANE_CPU], "scribble", scribble, secret);
    struct task *owner = add_host(list, machine->host->lanes[LANE_CPU], "owner", no_work, NULL);
    add_access(scribbler, open, ACCESS_READ);
    add_access(owner, secret, ACCESS_READ);
    audit_list(list);
}

TEST(audit_finds_what_is_not_declared)
{
    expect_case("half_written", EXIT_FAILED, "audit: task fill", "changes element 60 of tensor first", NULL);
    expect_case("host_write", EXIT_FAILED, "audit: task scribble", "on host (secret)", NULL);
}
