/* test_kills.c - training that is killed at any moment, and goes on from the newest snapshot.
 *
 * This test checks that such a training comes to the bits of a run that was never interrupted.  A *life* is a process
 * of ./yard: a signal ends a whole program, and with it all that was only in its memory or its threads.
 *
 * A *chain* is one training in many lives.  SIGKILL or SIGINT ends each life but the last: most of them some time after
 * their first step, others while they start or take the file over.  The next life resumes, often with other passes or
 * another ZeRO, so that the file gets a new layout.  After each end the file's newest iteration must be at least the
 * newest one that the log calls committed, and the next life must begin right after it.  The last life's state must be
 * that of the reference, to the bit.
 *
 * With --restart all lives belong to one command: its child is killed, and nobody types anything.  Its log must have
 * every step.
 *
 * To see it fail: in snapfile_read.c, let newer_page() take the older one: < in place of >.
 *
 * `make test` ends few lives.  `make kills N=2000 SEED=3` ends 2000, and prints how they were spread.
 */
#include "techniques/snapfile/snapfile_parts.h"
#include "techniques/snapshot/snapshot.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>

enum { STEPS = 40, MOST_VARIANTS = 6 };
#define COMMON "train --model tiny --steps 40 --val-batches 1 --val-every 17 --sample-tokens 0"

static const struct course { /* runs whose bits are the same */
    const char *words;
    const char *variant[MOST_VARIANTS];
} courses[] = {
    {"",
     {"", "--overlap all-cpu", "--recompute full --snapshot-slots 3", "--swap layer --swap-what parameters,optimizer",
      "--snapshot-in device"}},
    {"-d 0:0x2 --mesh dp=2",
     {"--zero 1", "--zero 0", "--zero 3", "--zero 2 --broadcast-queues 3", "--zero 0 --overlap all-cpu",
      "--zero 3 --overlap all-cpu --snapshot-every 3"}},
    {"-d 0:0x2 --mesh pp=2 --micro-batch 1", {"", "--pipeline gpipe", "--swap layer --snapshot-in device"}},
    {"-d 0:0x2 --mesh tp=2", {"", "--recompute selective", "--clip 1 --overlap all-cpu"}},
    {"-d 0:0x4 --mesh dp=2,pp=2 --micro-batch 1",
     {"--zero 3", "--zero 1 --delay-seed 5", "--zero 0 --recompute full --snapshot-in device"}},
    {"-d 0:0x8 --mesh dp=2,pp=2,tp=2 --micro-batch 1",
     {"--zero 3 --overlap all-cpu --broadcast-queues 3 --swap layer --swap-what parameters,optimizer,activations "
      "--recompute selective",
      "--zero 1"}},
};

static struct {
    int ends, by_signal, starting, chains, anew, most; /* lives ended; of them by SIGINT; before their first step */
} count;
static uint32_t drawn;

static int draw(int below)
{
    const char *seed = getenv("SEED");
    double uniform = random_uniform(seed ? (uint64_t)atoi(seed) : 1, STREAM_TEST, 3, drawn);
    drawn++;
    return (int)(uniform * below);
}

/* ---- a life ------------------------------------------------------------------------------------------------------ */

static pid_t start(const char *words, const char *log)
{
    const char *program = getenv("YARD");
    char *line = lasting("exec %s " COMMON " %s --log %s >%s 2>&1 </dev/null", program ? program : "./yard", words, log,
                         temp_path("said"));
    unlink(log);
    pid_t child = fork();
    assert_at_least(child, 0);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", line, NULL);
        _exit(127);
    }
    return child;
}

/* The first or last number after that key in the log; 0: none. */
static uint32_t logged(const char *log, const char *key, bool first)
{
    char line[4096];
    uint32_t found = 0;
    FILE *file = fopen(log, "r");
    while (file && fgets(line, sizeof line, file)) {
        bool has_key = strncmp(line, key, strlen(key)) == 0 && !strstr(line, "val_loss");
        if (has_key && !(first && found))
            found = (uint32_t)strtoul(line + strlen(key), NULL, 10);
    }
    if (file)
        fclose(file);
    return found;
}

static double now(void) { return 1e-9 * (double)now_ns(); }

static void nap(double seconds) { nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds)}, NULL); }

/* Ends it after `seconds`, counted from its first step, or from its start; or it ends before.  Its status. */
static int end_life(pid_t child, const char *log, double seconds, bool from_step, int signal)
{
    double from = now();
    int status = 0;
    bool begun = !from_step;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (!begun && logged(log, "{\"step\":", true)) {
            begun = true;
            from = now();
        }
        if (begun && now() - from >= seconds) {
            kill(child, signal);
            assert_int_equal(waitpid(child, &status, 0), child);
            break;
        }
        nap(0.0003);
    }
    return status;
}

/* The newest iteration that the file has; 0: none. */
static uint32_t read_newest(const char *snapshot)
{
    uint32_t step = 0;
    struct stat there;
    if (stat(snapshot, &there) != 0 || there.st_size == 0) /* none, or one that was about to be filled */
        return 0;
    struct checkpoint *checkpoint = read_snapshot(snapshot);
    step = snapfile_of(checkpoint)->newest.slot ? checkpoint->step : 0;
    free_checkpoint(checkpoint);
    return step;
}

static void show_what_run_said(const char *words, const char *log, int status)
{
    print_error("%s\nlog %s, status %d; it said\n", words, log, status);
    char *line = lasting("tail -n 12 %s >&2", temp_path("said"));
    assert_at_least(system(line), 0); /* NOLINT */
}

/* ---- a chain ----------------------------------------------------------------------------------------------------- */

static void expect_same_state(const char *folder, const char *expected)
{
    char *ours = find_checkpoint(folder), *theirs = find_checkpoint(expected);
    assert_non_null(ours);
    assert_non_null(theirs);
    struct checkpoint *found = open_checkpoint(ours), *reference = open_checkpoint(theirs);
    assert_int_equal(found->step, STEPS);
    assert_int_equal(reference->step, STEPS);
    for (size_t i = 0; i < found->cut->n; i++)
        if (compare_tensor(found, reference, i).elements)
            test_failed("%s of %s differs from that of %s\n", found->cut->tensors[i].name, folder, expected);
    free_checkpoint(found);
    free_checkpoint(reference);
    free(ours);
    free(theirs);
}

struct chain {
    const struct course *course;
    int variant;
    char folder[1024], snapshot[1100], save[1100];
    double seconds; /* how long a whole run takes after its first step */
    double begin;   /* how long it takes up to its first step */
};

/* Another life, which resumes where there is something to resume; true: it came to its end. */
static bool live(struct chain *chain, int life, bool may_end)
{
    char log[1200], words[8192];
    bool starting = draw(6) == 0, politely = draw(10) == 0;
    uint32_t before = read_newest(chain->snapshot);
    snprintf(log, sizeof log, "%s/%d.jsonl", chain->folder, life);
    while (draw(4) == 0 || !chain->course->variant[chain->variant])
        chain->variant = draw(MOST_VARIANTS);
    snprintf(words, sizeof words, "%s %s --snapshot %s --save %s%s%s", chain->course->words,
             chain->course->variant[chain->variant], chain->snapshot, chain->save, before ? " --resume " : "",
             before ? chain->snapshot : "");
    double length = starting ? chain->begin * 1.2 : chain->seconds * 0.8;
    if (may_end)
        length = 1e9;
    int status = end_life(start(words, log), log, may_end ? length : length * draw(1000) / 1000, !starting && !may_end,
                          politely ? SIGINT : SIGKILL);
    bool ended = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OK;
    bool killed = WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGINT);
    uint32_t first = logged(log, "{\"step\":", true), told = logged(log, "{\"snapshot\":", false);
    uint32_t newest = read_newest(chain->snapshot);
    if (!ended && !killed && WEXITSTATUS(status) != EXIT_INTERRUPTED) {
        show_what_run_said(words, log, status);
        _fail(__FILE__, __LINE__);
    }
    if ((first && first != before + 1) || newest < MAX(told, before))
        test_failed("%s\nthe file had step %u, it began with step %u, logged the commit of %u, and the file has %u\n",
                    words, before, first, told, newest);
    if (!ended)
        count.ends++;
    if (!ended && politely)
        count.by_signal++;
    if (!ended && !first)
        count.starting++;
    if (!ended && !newest)
        count.anew++;
    return ended;
}

static void run_chain(struct chain *chain, const char *reference, int lives)
{
    char *line = lasting("rm -rf %s && mkdir %s", chain->folder, chain->folder);
    assert_int_equal(system(line), 0); /* NOLINT */
    int life = 0;
    while (!live(chain, life, life >= lives))
        life++;
    expect_same_state(chain->save, reference);
    count.chains++;
    count.most = MAX(count.most, life);
}

static void tell_counts(void)
{
    print_message("# %d lives ended, %d by SIGINT, %d before their first step, %d before anything was committed; "
                  "%d chains, of at most %d lives: all resumed, all bits equal\n",
                  count.ends, count.by_signal, count.starting, count.anew, count.chains, count.most + 1);
    fflush(NULL);
}

static struct chain begin_chain(const struct course *course)
{
    struct chain chain = {.course = course};
    snprintf(chain.folder, sizeof chain.folder, "%s", temp_path("chain"));
    snprintf(chain.snapshot, sizeof chain.snapshot, "%s/run.snap", chain.folder);
    snprintf(chain.save, sizeof chain.save, "%s/saved", chain.folder);
    return chain;
}

/* The course without any break, which is timed; its folder. */
static char *make_reference(struct chain *chain)
{
    char *reference = temp_path("reference"), *log = temp_path("reference.jsonl");
    char *words = lasting("%s %s --save %s", chain->course->words, chain->course->variant[0], reference);
    double began = now();
    pid_t child = start(words, log);
    while (!logged(log, "{\"step\":", true) && kill(child, 0) == 0 && now() - began < 60)
        nap(0.001);
    chain->begin = now() - began;
    int status = end_life(child, log, 60, true, SIGKILL);
    chain->seconds = now() - began - chain->begin;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_OK) {
        show_what_run_said(words, log, status);
        _fail(__FILE__, __LINE__);
    }
    return reference;
}

/* `make test` kills the first course once or twice. */
LAW(what_is_killed_is_resumed)
{
    const struct cases some = cases_of(1, COUNT(courses));
    int kills = number_from("YARD_CASES", 8), n = (int)COUNT(courses);
    for (int i = some.begin; i < some.end; i++) {
        struct chain chain = begin_chain(&courses[i]);
        char *reference = make_reference(&chain);
        for (int until = (i + 1) * kills / n; count.ends < until;)
            run_chain(&chain, reference, MIN(1 + draw(9), until - count.ends));
        tell_counts();
    }
}

/* ---- a single command -------------------------------------------------------------------------------------------- */

static pid_t find_child(pid_t parent)
{
    int child = 0;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%d", &child) != 1)
        child = 0;
    if (file)
        fclose(file);
    return child;
}

static void expect_every_step(const char *log)
{
    char line[4096];
    bool seen[STEPS + 1] = {false};
    FILE *file = fopen(log, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "{\"step\":", 8) == 0)
            seen[strtoul(line + 8, NULL, 10) % (STEPS + 1)] = true;
    fclose(file);
    for (int i = 1; i <= STEPS; i++)
        if (!seen[i])
            test_failed("%s: step %d is missing\n", log, i);
}

/* yard gives up after 3 restarts without a commit: so every third life is killed only after one. */
static int run_restarting(struct chain *chain, const char *reference, int most)
{
    char *log = temp_path("restarting.jsonl"), *folder = lasting("rm -rf %s && mkdir %s", chain->folder, chain->folder);
    int killed = 0, status = 0;
    pid_t last = 0, child;
    assert_int_equal(system(folder), 0); /* NOLINT */
    char *words = lasting("%s %s --snapshot %s --save %s --restart", chain->course->words, chain->course->variant[0],
                          chain->snapshot, chain->save);
    pid_t parent = start(words, log);
    while (waitpid(parent, &status, WNOHANG) == 0) {
        nap(0.0003);
        if (killed == most)
            continue;
        child = find_child(parent);
        if (child == 0 || child == last)
            continue;
        uint32_t commit = read_newest(chain->snapshot);
        double share = draw(1000) * 1e-3;
        double longest = draw(3) ? chain->begin + chain->seconds : chain->begin;
        double until = now() + share * longest;
        bool after_commit = killed % 3 == 2; /* this life is not killed before it has written a snapshot */
        while (kill(child, 0) == 0 && find_child(parent) == child) {
            bool has_time = now() < until;
            bool lacks_commit = after_commit && read_newest(chain->snapshot) == commit;
            if (!has_time && !lacks_commit)
                break;
            nap(0.0003);
        }
        if (find_child(parent) == child && kill(child, SIGKILL) == 0)
            killed++;
        last = child;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_OK) {
        show_what_run_said(words, log, status);
        _fail(__FILE__, __LINE__);
    }
    expect_same_state(chain->save, reference);
    expect_every_step(log);
    return killed;
}

LONG_TEST(what_is_killed_is_restarted)
{
    int kills = number_from("YARD_CASES", 6);
    int killed = 0;
    int runs = 0;
    if (!find_child(getppid())) /* /proc does not name even this process */
        skip();
    for (int i = 0; i < 2; i++) {
        struct chain chain = begin_chain(&courses[i]);
        char *reference = make_reference(&chain);
        for (; killed < (i + 1) * kills / 2; runs++)
            killed += run_restarting(&chain, reference, (i + 1) * kills / 2 - killed);
    }
    print_message("# %d children killed under --restart, of %d runs: all bits equal, every step logged\n", killed,
                  runs);
}
