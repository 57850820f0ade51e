/* SPDX-License-Identifier: Apache-2.0 */
/* random.c: the program.
 *
 *   random COUNT [SEED]     draws COUNT graphs, from SEED on (default 1), and holds them to what random_graph.h lists
 *   random --show SEED      prints the graph of a seed
 *   random --shrink SEED    makes the failing graph of a seed small and prints it
 *   random FILE.weft…       holds kept graphs to the same
 *
 * `--choices` in front of any of these has every graph also run with the second to the ninth choice of every unit;
 * `--thorough` waits for compiled code in each second run, and adds runs with 4 and 3 threads.
 *
 * `--first OP` in front of them has every graph begin with what is drawn for this op: of attention two times of three
 * the primitives that it is made of.
 *
 * Graphs are checked by child processes, so that a crash or a loop without end is a failure with a seed like any other;
 * this process itself never computes. Closes with "N passed, N failed, N skipped". */
#include "tests/property/random_graph.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 25, MOST_WORKERS = 16, SECONDS = 60 };

static struct weft_machine_options options; /* --choices, --thorough */

struct drawing {
    struct weft_context *context;
    struct weft_draws *choices;
    uint64_t name;
    uint32_t *drawn;
    struct weft_graph *graph;
};

static int draw(void *argument)
{
    struct drawing *d = argument;
    d->graph = weft_draw_graph(d->context, d->choices, d->name, d->drawn);
    return WEFT_OK;
}

static void print_graph(const struct weft_graph *graph)
{
    struct weft_text text = {.context = graph->context};
    weft_print_graph(graph, &(struct weft_print_options){.all_inline = true}, &text);
    fputs(text.data, stdout);
    weft_text_close(&text);
}

/* Draws what the choices say and checks it. */
static enum weft_outcome check_choices(const struct weft_machine *machine, struct weft_draws *choices, uint64_t name,
                                       uint32_t *drawn, bool quiet)
{
    struct drawing d = {.context = machine->context[0], .choices = choices, .name = name, .drawn = drawn};
    weft_protected(d.context, draw, &d); /* refused operands leave errors behind; they are none */
    const enum weft_outcome failure = weft_check_graph(machine, d.graph, quiet);
    weft_graph_destroy(d.graph);
    return failure;
}

/* --- making small ------------------------------------------------------------------------------------------------- */

struct reproduction {
    uint64_t seed;
    int outcome; /* of the whole graph */
};

/* In a child: what becomes of the choices; a signal counts as an outcome of its own. */
static int outcome_of(struct weft_draws *choices, uint64_t seed)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        struct weft_machine machine;
        alarm(SECONDS / 3);
        if (!weft_machine_open(&machine, &options) || !freopen("/dev/null", "w", stderr))
            _exit(120);
        choices->next = 0;
        _exit((int)check_choices(&machine, choices, seed, NULL, true));
    }
    int status = 0;
    while (child < 0 || (waitpid(child, &status, 0) < 0 && errno == EINTR))
        if (child < 0)
            return 0;
    return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool still_fails(void *user, struct weft_draws *choices)
{
    const struct reproduction *r = user;
    return outcome_of(choices, r->seed) == r->outcome;
}

/* Draws in a child, since drawing itself may crash, but prints in this process when it does not. */
static void show(struct weft_draws *choices, uint64_t seed)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        struct weft_machine machine;
        if (!weft_machine_open(&machine, &options))
            _exit(120);
        choices->next = 0;
        struct drawing d = {.context = machine.context[0], .choices = choices, .name = seed};
        weft_protected(d.context, draw, &d);
        print_graph(d.graph);
        fflush(stdout);
        const enum weft_outcome failure = weft_check_graph(&machine, d.graph, false);
        printf("# outcome: %d\n", (int)failure);
        fflush(stdout);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
}

/* Draws the sequence of a seed in a child, which writes it down: a process that has opened a context has children whose
 * plans run on one thread, so that what fails with two would hold. */
static bool draw_apart(uint64_t seed, struct weft_draws *choices)
{
    FILE *const file = tmpfile();
    const pid_t child = file ? fork() : -1;
    if (child == 0) {
        struct weft_machine machine;
        if (!weft_machine_open(&machine, &options))
            _exit(1);
        struct drawing d = {.context = machine.context[0], .choices = choices, .name = seed};
        weft_protected(d.context, draw, &d);
        fwrite(choices, sizeof *choices, 1, file);
        fwrite(choices->value, sizeof *choices->value, choices->count, file);
        _exit(fflush(file) != 0);
    }
    int status = 1;
    bool read = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    if (read) {
        rewind(file);
        read = fread(choices, sizeof *choices, 1, file) == 1;
        choices->value = read ? malloc((choices->capacity + 1) * sizeof *choices->value) : NULL;
        read = choices->value && fread(choices->value, sizeof *choices->value, choices->count, file) == choices->count;
    }
    if (file)
        fclose(file);
    return read;
}

static int shrink_seed(uint64_t seed)
{
    struct weft_draws choices;
    weft_choices_seed(&choices, seed);
    if (!draw_apart(seed, &choices)) {
        fprintf(stderr, "seed %llu cannot be drawn\n", (unsigned long long)seed);
        return 1;
    }
    choices.replay = true;
    struct reproduction r = {.seed = seed, .outcome = outcome_of(&choices, seed)};
    if (r.outcome == 0) {
        printf("seed %llu holds\n", (unsigned long long)seed);
    } else {
        weft_shrink(&choices, still_fails, &r);
        printf("# seed %llu, made small\n", (unsigned long long)seed);
        show(&choices, seed);
    }
    weft_choices_free(&choices);
    return r.outcome != 0;
}

static int show_seed(uint64_t seed)
{
    struct weft_draws choices;
    weft_choices_seed(&choices, seed);
    show(&choices, seed);
    return 0;
}

/* --- many graphs -------------------------------------------------------------------------------------------------- */

/* What children report, in shared memory. */
struct board {
    _Atomic uint64_t next;                    /* the first seed that nobody has taken */
    _Atomic uint64_t at[MOST_WORKERS];        /* the seed that a worker is at, 0: none */
    _Atomic uint64_t end[MOST_WORKERS];       /* one past the last of its batch */
    _Atomic uint32_t passed, failed, drawn[WEFT_OP_COUNT];
};

/* The options that a seed needs to fail again. */
static const char *options_text(void)
{
    static const char *const text[2][2] = {{"", "--thorough "}, {"--choices ", "--choices --thorough "}};
    return text[options.choices][options.thorough];
}

static void report(uint64_t seed, const char *how)
{
    printf("seed %llu %s; ./dev random %s--shrink %llu makes it small\n", (unsigned long long)seed, how,
           options_text(), (unsigned long long)seed);
    fflush(stdout);
}

static void work_at(struct board *board, int worker, uint64_t last)
{
    struct weft_machine machine;
    uint32_t drawn[WEFT_OP_COUNT] = {0};
    if (!weft_machine_open(&machine, &options))
        _exit(1);
    for (;;) {
        if (board->at[worker] == 0 || board->at[worker] >= board->end[worker]) {
            board->at[worker] = atomic_fetch_add(&board->next, BATCH);
            board->end[worker] = board->at[worker] + BATCH;
        }
        if (board->at[worker] > last)
            break;
        for (; board->at[worker] < board->end[worker] && board->at[worker] <= last; board->at[worker]++) {
            struct weft_draws choices;
            weft_choices_seed(&choices, board->at[worker]);
            alarm(SECONDS);
            if (check_choices(&machine, &choices, board->at[worker], drawn, false)) {
                report(board->at[worker], "fails");
                board->failed++;
            } else {
                board->passed++;
            }
            weft_choices_free(&choices);
        }
        board->at[worker] = board->end[worker];
    }
    for (int op = 1; op < WEFT_OP_COUNT; op++)
        board->drawn[op] += drawn[op];
    weft_machine_close(&machine);
    fflush(stdout);
    _exit(0);
}

static pid_t start(struct board *board, int worker, uint64_t last)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        work_at(board, worker, last);
    return child;
}

/* A child that dies leaves the seed that it was at; another goes on behind it. */
static void run_workers(struct board *board, int workers, uint64_t last)
{
    pid_t child[MOST_WORKERS];
    for (int i = 0; i < workers; i++)
        child[i] = start(board, i, last);
    for (int running = workers; running > 0;) {
        int status;
        const pid_t done = wait(&status);
        int i = 0;
        while (i < workers && child[i] != done)
            i++;
        if (i == workers)
            continue;
        running--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        char how[64];
        snprintf(how, sizeof how, WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "does not end"
                                  : WIFSIGNALED(status)                             ? "dies of signal %d"
                                                                                    : "ends the process with %d",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        report(board->at[i], how);
        board->failed++;
        if (board->failed > 100)
            continue;
        board->at[i]++;
        child[i] = start(board, i, last);
        running++;
    }
}

static int check_seeds(uint64_t count, uint64_t seed)
{
    struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return 1;
    const char *error = weft_draw_table_error();
    if (error)
        printf("op %s has neither a generator nor a reason in draw.def\n", error);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    board->next = seed;
    run_workers(board, cpus < 1 ? 1 : cpus > MOST_WORKERS ? MOST_WORKERS : (int)cpus, seed + count - 1);
    clock_gettime(CLOCK_MONOTONIC, &end);
    uint64_t nodes = 0;
    int missing = 0;
    for (int op = 1; op < WEFT_OP_COUNT; op++) {
        nodes += board->drawn[op];
        if (weft_is_drawn(op) && board->drawn[op] == 0 && count >= 500 && board->failed == 0) {
            printf("op %s was never drawn: its generator makes nothing that is accepted\n", weft_ops[op].name);
            missing++;
        }
    }
    printf("seeds %llu to %llu: %llu nodes, %.1f s\n", (unsigned long long)seed,
           (unsigned long long)(seed + count - 1), (unsigned long long)nodes,
           (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9);
    const unsigned failed = board->failed + (unsigned)missing + (error != NULL);
    printf("%u passed, %u failed, 0 skipped\n", board->passed, failed);
    return failed > 0 || board->passed == 0;
}

/* --- kept graphs -------------------------------------------------------------------------------------------------- */

static int check_files(char **path, int paths)
{
    struct weft_machine machine;
    int passed = 0, failed = 0;
    if (!weft_machine_open(&machine, &options))
        return 1;
    for (int i = 0; i < paths; i++) {
        struct weft_graph *graph;
        if (weft_load(machine.context[0], path[i], &graph) != WEFT_OK) {
            printf("%s\n", weft_last_error(machine.context[0]));
            failed++;
            continue;
        }
        const bool holds = weft_check_graph(&machine, graph, false) == WEFT_HOLDS;
        if (!holds)
            printf("%s fails\n", path[i]);
        passed += holds;
        failed += !holds;
        weft_graph_destroy(graph);
    }
    weft_machine_close(&machine);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed > 0 || passed == 0;
}

/* --- the command line --------------------------------------------------------------------------------------------- */

static bool read_number(const char *word, uint64_t *ret)
{
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(word, &end, 10);
    *ret = number;
    return *word >= '0' && *word <= '9' && !*end && !errno && number > 0 && number < (uint64_t)1 << 62;
}

/* Threads of OpenMP spin while they wait, and here twice as many of them wait as there are cores. OpenMP looks at this
 * when a process starts, so the process starts again. */
static void wait_asleep(char **argv)
{
    if (!getenv("OMP_WAIT_POLICY") && setenv("OMP_WAIT_POLICY", "passive", 1) == 0)
        execv("/proc/self/exe", argv); /* where that fails, all is as right and slower */
}

int main(int argc, char **argv)
{
    uint64_t count, seed = 1;
    wait_asleep(argv);
    for (bool known = true; argc > 1 && known; argc -= known, argv += known) {
        const bool choices = strcmp(argv[1], "--choices") == 0, thorough = strcmp(argv[1], "--thorough") == 0;
        options.choices |= choices;
        options.thorough |= thorough;
        known = choices || thorough;
    }
    if (argc > 2 && strcmp(argv[1], "--first") == 0) {
        for (int op = 1; op < WEFT_OP_COUNT; op++)
            weft_draw_first = strcmp(weft_ops[op].name, argv[2]) == 0 && weft_is_drawn(op) ? op : weft_draw_first;
        argc -= 2, argv += 2;
    }
    const char *const word = argc > 1 ? argv[1] : "";
    if (argc == 3 && strcmp(word, "--show") == 0 && read_number(argv[2], &seed))
        return show_seed(seed);
    if (argc == 3 && strcmp(word, "--shrink") == 0 && read_number(argv[2], &seed))
        return shrink_seed(seed);
    if ((argc == 2 || (argc == 3 && read_number(argv[2], &seed))) && read_number(word, &count))
        return check_seeds(count, seed);
    if (argc > 1 && strstr(word, ".weft"))
        return check_files(argv + 1, argc - 1);
    fprintf(stderr, "usage: random [--choices] [--thorough] [--first OP] COUNT [SEED] | --show SEED | --shrink SEED |"
                    " FILE.weft…\n");
    return 2;
}
