/* candidates.c - candidates of --search are simulated in processes of their own, several at the same time.
 *
 *     candidates      1  2  3  4  5  6            from the least bound of time on
 *     one process     [  1  ][    3    ][  6  ]
 *     another one     [     2     ][  4 x[  5  ]  4 began before 3 had ended, and 3 rules it out: its process is killed
 *
 * The parent process judges the candidates in their order, each after those before it have been simulated.  So what the
 * search finds and counts does not depend on the number of processes.
 *
 * A child process sets the options of recomputation and swap for its candidate, and they end with it.
 *
 * Once a child has placed its list it knows the bytes, which may be far more than their bound.  If something that was
 * simulated before the child began rules the candidate out by these bytes and the bound of the time, the child ends: to
 * find the edges and to simulate would take longer than all before.  The parent asks again when the candidate's turn
 * comes, so that what it keeps does not depend on when the child began.
 */
#include "mesh_search.h"
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "techniques/recompute/recompute.h"
#include "techniques/swap/swap.h"
#include "trainer/device/driver.h"

#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BEST = 10,          /* how many rows are tried with recomputation and swap */
    WAYS = 3,           /* the ways of list_ways() */
    BYTES_A_TASK = 6000 /* what a task of a list takes of the host's memory; 3,000 to 5,000 were measured */
};

struct trial_result {      /* what a child process has simulated, in memory that its parent sees too */
    bool is_placed;        /* its bytes are known, and its seconds unless these bytes rule it out */
    double seconds, bytes; /* the time of a step, and what the fullest device holds */
    enum exit_code code;
    char why_not[500]; /* where it cannot be planned, as where swap finds no room */
};

enum verdict { TOO_LARGE, TOO_SLOW, NOT_SIMULATED, SIMULATED, VERDICTS };

struct trials { /* the simulations of an array of candidates */
    struct mesh_search *search;
    const struct mesh_candidate *candidates; /* [n] */
    size_t n;
    const char *activity;         /* what the progress line says */
    size_t limit;                 /* how many are simulated at most */
    struct trial_result *results; /* [n], shared with the child processes */
    int *pid;                     /* [n]; 0: none was begun, or it has ended */
    size_t next;                  /* all before it were begun, or were ruled out */
    int running;
    double memory, taken;   /* bytes of the host: what the running ones may take together, and what they take, about */
    size_t count[VERDICTS]; /* how many judged candidates have each verdict */
    double left_seconds;    /* the least bound of the time of those that are NOT_SIMULATED; INFINITY: none is */
};

/* Is the candidate ruled out when its list takes `bytes` bytes? */
static bool is_ruled_out(const struct mesh_search *search, const struct mesh_candidate *candidate, double bytes)
{
    return search->prunes && is_beaten(search, bytes, candidate->least_seconds);
}

/* ---- in the child ------------------------------------------------------------------------------------------------ */

/* The bytes of the fullest device. */
static double placed_bytes(const struct machine *machine)
{
    size_t most = 0;
    for (int i = 0; i < machine->n_devices; i++)
        most = MAX(most, machine->devices[i].placed_bytes);
    return (double)most;
}

static void note_problem(struct trial_result *result, const struct problem *problem)
{
    result->code = problem->code;
    snprintf(result->why_not, sizeof result->why_not, "%s", problem->sentence);
}

/* Places the list, and simulates it, unless its bytes rule it out. */
static void measure_candidate(const struct mesh_search *search, const struct mesh_candidate *candidate,
                              struct trainer *trainer, struct trial_result *result)
{
    struct problem *problem = place_draft(trainer);
    if (problem) {
        note_problem(result, problem);
        return;
    }
    result->bytes = placed_bytes(trainer->machine);
    result->is_placed = true;
    if (is_ruled_out(search, candidate, result->bytes))
        return;
    depend_draft(trainer);
    result->seconds = must_simulate(trainer->train_list, costs_of(trainer))->period;
}

static void plan_candidate(const struct mesh_search *search, const struct mesh_candidate *candidate,
                           struct trial_result *result)
{
    char mesh[MESH_TEXT];
    struct settings settings = search->settings;
    struct problem *problem;
    settings.mesh = format_mesh(mesh, &candidate->mesh);
    settings.zero = candidate->mesh.zero;
    settings.turn_order = candidate->turn_order;
    settings.pipeline = candidate->pipeline;
    settings.micro_batch = candidate->micro_batch;
    if (candidate->swap != SWAP_OFF)
        settings.device_memory = search->given->device_memory;
    (void)try_option("recompute", word_of("recompute", (int)candidate->recompute));
    (void)try_option("swap", word_of("swap", (int)candidate->swap));
    struct trainer *trainer = try_new_draft(&settings, LIST_TRAIN, &problem);
    if (trainer)
        measure_candidate(search, candidate, trainer, result);
    else
        note_problem(result, problem);
}

/* ---- in the parent ----------------------------------------------------------------------------------------------- */

static bool is_too_large(const struct mesh_search *search, const struct mesh_candidate *candidate)
{
    return search->prunes && candidate->least_state > search->budget;
}

static bool is_too_slow(const struct mesh_search *search, const struct mesh_candidate *candidate)
{
    return is_ruled_out(search, candidate, candidate->least_bytes);
}

/* Half of the memory that this process may take. */
static double memory_for_trials(void)
{
    size_t all = physical_memory(), left = memory_left_by_limits();
    return (double)MIN(all, left) / 2;
}

/* The bytes of the host that a trial takes, about. */
static double expected_bytes(const struct mesh_candidate *candidate) { return BYTES_A_TASK * candidate->tasks; }

static bool may_begin_another(const struct trials *trials, const struct mesh_candidate *candidate)
{
    if (trials->running == 0)
        return true;
    return trials->running < trials->search->processes && trials->taken + expected_bytes(candidate) <= trials->memory;
}

static void begin_trial(struct trials *trials, size_t i)
{
    trials->pid[i] = begin_helper();
    if (trials->pid[i] == 0) {
        plan_candidate(trials->search, &trials->candidates[i], &trials->results[i]);
        _exit(EXIT_OK);
    }
    trials->running++;
    trials->taken += expected_bytes(&trials->candidates[i]);
}

/* Begins the next candidates, as far as there are processes and memory for them. */
static void begin_trials(struct trials *trials)
{
    while (trials->next < trials->n && may_begin_another(trials, &trials->candidates[trials->next]) && !interrupted()) {
        const struct mesh_candidate *candidate = &trials->candidates[trials->next];
        if (!is_too_large(trials->search, candidate) && !is_too_slow(trials->search, candidate))
            begin_trial(trials, trials->next);
        trials->next++;
    }
}

/* Waits for the end of the trial's process, and returns its status. */
static int end_trial(struct trials *trials, size_t i)
{
    int status = wait_for_process(trials->pid[i]);
    trials->pid[i] = 0;
    trials->running--;
    trials->taken -= expected_bytes(&trials->candidates[i]);
    return status;
}

static void drop_trial(struct trials *trials, size_t i)
{
    if (trials->pid[i] == 0)
        return;
    kill(trials->pid[i], SIGKILL);
    end_trial(trials, i);
}

/* Waits for the result of the candidate, and notes it. */
static void finish_trial(struct trials *trials, size_t i)
{
    struct mesh_search *search = trials->search;
    const struct mesh_candidate *candidate = &trials->candidates[i];
    const struct trial_result *result = &trials->results[i];
    char mesh[MESH_TEXT];
    int status = end_trial(trials, i);
    if (WIFSIGNALED(status))
        fail(EXIT_FAILED,
             "--search: the simulation of %s with %d micro-batches was ended by signal %d (%s), as where memory is "
             "short: use fewer devices or a larger --micro-batch",
             format_mesh(mesh, &candidate->mesh), candidate->micros, WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != EXIT_OK)
        end_silently((enum exit_code)WEXITSTATUS(status)); /* the child has said why */
    if (!result->is_placed && !search->problem)
        search->problem = new_problem(result->code, "%s", result->why_not);
    if (result->is_placed && !is_ruled_out(search, candidate, result->bytes)) {
        GROW(search->outcomes, search->cap_outcomes, search->n_outcomes + 1);
        search->outcomes[search->n_outcomes++] =
            (struct mesh_outcome){.candidate = *candidate, .seconds = result->seconds, .bytes = result->bytes};
    }
}

/* Is the candidate simulated, or why not?  Its bounds come first: if they rule it out, it does not count as left. */
static enum verdict judge(const struct trials *trials, size_t i)
{
    const struct mesh_candidate *candidate = &trials->candidates[i];
    if (is_too_large(trials->search, candidate))
        return TOO_LARGE;
    if (is_too_slow(trials->search, candidate))
        return TOO_SLOW;
    if (trials->count[SIMULATED] == trials->limit || trials->pid[i] == 0 || interrupted())
        return NOT_SIMULATED;
    return SIMULATED;
}

static void count_verdict(struct trials *trials, size_t i, enum verdict verdict)
{
    trials->count[verdict]++;
    if (verdict == NOT_SIMULATED)
        trials->left_seconds = fmin(trials->left_seconds, trials->candidates[i].least_seconds);
}

/* The progress line: what is done, and the shortest step so far that fits. */
static void show_trials(const struct trials *trials, uint64_t begun, size_t i)
{
    const struct mesh_search *search = trials->search;
    char text[128];
    double least = INFINITY;
    for (const struct mesh_outcome *outcome = search->outcomes; outcome < search->outcomes + search->n_outcomes;
         outcome++)
        if (outcome->bytes <= search->budget)
            least = fmin(least, outcome->seconds);
    if (isfinite(least))
        snprintf(text, sizeof text, "%s, best %.3f ms", trials->activity, 1e3 * least);
    else
        snprintf(text, sizeof text, "%s", trials->activity);
    show_busy(text, begun, (double)i / (double)trials->n);
}

/* Simulates the candidates that no bound rules out. */
static void run_trials(struct trials *trials)
{
    uint64_t begun = now_ns();
    size_t bytes = MAX(trials->n, 1) * sizeof *trials->results;
    trials->results = allocate_shared(bytes);
    trials->pid = allocate(trials->n, sizeof *trials->pid);
    trials->memory = memory_for_trials();
    trials->left_seconds = INFINITY;
    for (size_t i = 0; i < trials->n; i++) {
        show_trials(trials, begun, i);
        begin_trials(trials);
        enum verdict verdict = judge(trials, i);
        if (verdict == SIMULATED)
            finish_trial(trials, i);
        else
            drop_trial(trials, i);
        count_verdict(trials, i, verdict);
    }
    munmap(trials->results, bytes);
    free(trials->pid);
}

/* ---- which ones -------------------------------------------------------------------------------------------------- */

static int by_bound(const void *left, const void *right)
{
    const struct mesh_candidate *a = left;
    const struct mesh_candidate *b = right;
    return BY(a->least_seconds, b->least_seconds, COMPARE(a->number, b->number));
}

void simulate_candidates(struct mesh_search *search)
{
    char *activity = format_string("searching %zu candidates", search->n_candidates);
    SORT(search->candidates, search->n_candidates, by_bound);
    struct trials all = {.search = search,
                         .candidates = search->candidates,
                         .n = search->n_candidates,
                         .limit = search->limit,
                         .activity = activity};
    run_trials(&all);
    search->too_large = all.count[TOO_LARGE];
    search->too_slow = all.count[TOO_SLOW];
    search->left = all.count[NOT_SIMULATED];
    search->left_seconds = all.left_seconds;
    free(activity);
}

/* Lists the ways to save memory on a row of the front in `ways`, and returns how many there are, at most WAYS.
 * Recomputation and swap both save activations; swap may move everything.  So their bounds of memory are lower. */
static size_t list_ways(const struct mesh_search *search, const struct mesh_outcome *row, struct mesh_candidate *ways)
{
    size_t n = 0;
    struct mesh_candidate candidate = row->candidate;
    if (row->bytes > search->budget) {
        ways[n] = candidate;
        ways[n].swap = SWAP_AUTO;
        ways[n].least_bytes = 0;
        n++;
    }
    for (candidate.recompute = RECOMPUTE_FULL; candidate.recompute <= RECOMPUTE_SELECTIVE; candidate.recompute++) {
        ways[n] = candidate;
        ways[n].least_bytes = candidate.least_state;
        n++;
    }
    return n;
}

void simulate_with_techniques(struct mesh_search *search)
{
    struct mesh_candidate ways[WAYS * BEST];
    size_t tried = 0, n = 0;
    size_t rows = sort_front(search, INFINITY);
    for (size_t i = 0; i < rows && tried < BEST; i++) {
        const struct mesh_outcome *row = &search->outcomes[i];
        if (row->candidate.least_state > search->budget)
            continue;
        n += list_ways(search, row, &ways[n]);
        tried++;
    }
    struct trials all = {.search = search,
                         .candidates = ways,
                         .n = n,
                         .limit = SIZE_MAX,
                         .activity = "searching, with recomputation and swap"};
    run_trials(&all);
}
