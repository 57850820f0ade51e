/* SPDX-License-Identifier: Apache-2.0 */
/* load.c: contexts whose messages go to stderr, and graphs from files. What could hang or surprise is refused before
 * the library sees it: only regular files are read, so that a pipe without a writer says so instead of waiting. */
#include "tools/tools.h"

#include "ir/ir.h"
#include "ir/suggest.h"
#include "kernels/kernels.h"
#include "tools/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

double weft_tool_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

const char *weft_tool_bytes(double bytes, char text[32])
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    int unit = 0;
    for (; bytes >= 1000 && unit < 4; unit++)
        bytes /= 1000;
    snprintf(text, 32, unit && bytes < 100 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

const char *weft_tool_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* --- files -------------------------------------------------------------------------------------------------------- */

bool weft_tool_folder(const char *path)
{
    char part[4096];
    const size_t length = strlen(path);
    bool ok = length > 0 && length < sizeof part;
    if (!ok)
        errno = length ? ENAMETOOLONG : ENOENT;
    for (size_t i = 1; ok && i <= length; i++) {
        if (path[i] && path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        struct stat status;
        ok = mkdir(part, 0777) == 0 || (errno == EEXIST && stat(part, &status) == 0);
        if (ok && stat(part, &status) == 0 && !S_ISDIR(status.st_mode)) {
            errno = ENOTDIR;
            ok = false;
        }
    }
    if (!ok)
        fprintf(stderr, "weft: %s: %s\n", path, strerror(errno));
    return ok;
}

const char *weft_tool_temporary(void)
{
    const char *const stated = getenv("TMPDIR");
    return stated && *stated ? stated : "/tmp";
}

bool weft_tool_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A regular file, or one that cannot be opened, about which the library has a message. */
static bool is_readable(const char *path)
{
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    if (file < 0)
        return true;
    const bool right = fstat(file, &status) != 0 || S_ISREG(status.st_mode);
    close(file);
    if (!right)
        fprintf(stderr, "weft: %s: %s, not a file that can be mapped\n", path,
                S_ISDIR(status.st_mode)    ? "a folder"
                : S_ISFIFO(status.st_mode) ? "a pipe"
                                           : "a device or socket");
    return right;
}

/* --- contexts ----------------------------------------------------------------------------------------------------- */

static bool hushed;

void weft_tool_hush(bool hush) { hushed = hush; }

static void show_message(void *user, const struct weft_diagnostic *d)
{
    if (hushed || (d->severity == WEFT_NOTE && !getenv("WEFT_PRINT")))
        return;
    fprintf(stderr, "weft: ");
    if (d->file)
        fprintf(stderr, "%s:", d->file);
    if (d->line)
        fprintf(stderr, "%d:%d:", (int)d->line, (int)d->column);
    fprintf(stderr, "%s%s%s%s%s\n", d->file || d->line ? " " : "", d->severity == WEFT_WARNING ? "warning: " : "",
            d->where ? d->where : "", d->where ? ": " : "", d->message);
}

int weft_tool_no_level(const char *level, const char *from)
{
    struct weft_suggest suggest;
    fprintf(stderr, "weft: no CPU level '%s' (from %s)%s; there are\n" WEFT_CPU_WORDS "%s\n", level, from,
            weft_suggest_among(&suggest, WEFT_CPU_WORDS, level, strlen(level)),
            WEFT_CPU_BUILT ? ", and sums of them such as avx512bf16+avx512vnni" : "");
    return WEFT_EXIT_USAGE;
}

struct weft_words weft_tool_customs;

int weft_tool_register(struct weft_context *context)
{
    for (int i = 0; i < weft_tool_customs.count; i++) {
        const char *const name = weft_tool_customs.word[i];
        char here[4096]; /* a file beside one, which the dynamic linker would not look for */
        const bool is_here = !strchr(name, '/') && access(name, F_OK) == 0 &&
                             snprintf(here, sizeof here, "./%s", name) < (int)sizeof here;
        if (weft_register_library(context, is_here ? here : name) < 0)
            return WEFT_EXIT_FAILED;
    }
    return WEFT_EXIT_OK;
}

static int open_with(const char *cpu, int threads, const char *prices, struct weft_context **ret_context)
{
    const char *level = cpu ? cpu : getenv("WEFT_CPU");
    uint32_t flags;
    if (level && (cpu || *level) && !weft_cpu_parse(level, &flags))
        return weft_tool_no_level(level, cpu ? "--cpu" : "the environment's WEFT_CPU");
    const struct weft_context_options options = {
        .size = sizeof options, .diagnose = show_message, .cpu = cpu, .threads = threads, .prices = prices};
    const int status = weft_open(&options, ret_context);
    if (status < 0)
        fprintf(stderr, "weft: cannot start: %s\n", weft_status_text(status));
    else if (threads > (*ret_context)->target.threads)
        fprintf(stderr, "weft: warning: --threads %d: there are %d; what counts is the CPUs that this process may use, "
                        "what its container may have of them, and OMP_NUM_THREADS\n",
                threads, (int)(*ret_context)->target.threads);
    return status < 0 ? WEFT_EXIT_FAILED : weft_tool_register(*ret_context);
}

int weft_tool_open(const char *cpu, int threads, struct weft_context **ret_context)
{
    return open_with(cpu, threads, NULL, ret_context);
}

int weft_tool_open_shipped(const char *cpu, int threads, struct weft_context **ret_context)
{
    return open_with(cpu, threads, "", ret_context);
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

struct parse {
    struct weft_context *context;
    const char *path;
    uint32_t number;
    struct weft_blob *file;
    struct weft_graph *graph;
};

static int parse_numbered(void *argument)
{
    struct parse *parse = argument;
    parse->file = weft_blob_map(parse->context, parse->path);
    if (!parse->file)
        return WEFT_ERR_IO;
    const struct weft_parse_options options = {.name = parse->path};
    uint32_t count = 0;
    parse->graph = weft_parse_graph(parse->context, parse->file->data, parse->file->bytes, parse->number, &options,
                                    &count);
    return parse->graph ? WEFT_OK : WEFT_ERR_SYNTAX;
}

/* Splits "NAME=X.npy" at its last '=', which ONNX allows in names, and reads the array. */
static bool read_fixed(const char *word, char name[1024], struct weft_tensor *ret_tensor)
{
    char message[WEFT_NPY_MESSAGE];
    const char *equals = strrchr(word, '=');
    const size_t length = equals ? (size_t)(equals - word) : 0;
    if (length == 0 || length >= 1024 || !equals[1]) {
        fprintf(stderr, "weft: --fix %s: not the name of an input, '=' and a file\n", word);
        return false;
    }
    memcpy(name, word, length);
    name[length] = '\0';
    if (weft_npy_load(equals + 1, ret_tensor, message))
        return true;
    fprintf(stderr, "weft: %s: %s\n", equals + 1, message);
    return false;
}

static int load_fixed(struct weft_context *context, const char *path, const struct weft_words *fixed,
                      struct weft_graph **ret_graph)
{
    static char name[WEFT_TOOL_WORDS][1024];
    struct weft_tensor tensor[WEFT_TOOL_WORDS];
    struct weft_fixed_input input[WEFT_TOOL_WORDS];
    int count = 0;
    while (count < fixed->count && read_fixed(fixed->word[count], name[count], &tensor[count])) {
        input[count] = (struct weft_fixed_input){name[count], &tensor[count]};
        count++;
    }
    const bool ok = count == fixed->count && weft_load_fixed(context, path, input, (size_t)count, ret_graph) >= 0;
    while (count > 0)
        weft_npy_free(&tensor[--count]);
    return ok ? WEFT_EXIT_OK : WEFT_EXIT_FAILED;
}

int weft_tool_load(struct weft_context *context, const char *path, int number, const struct weft_words *fixed,
                   struct weft_graph **ret_graph)
{
    static const struct weft_words none = {.count = 0};
    if (!is_readable(path))
        return WEFT_EXIT_FAILED;
    if (number == 0)
        return load_fixed(context, path, fixed ? fixed : &none, ret_graph);
    const char *point = strrchr(path, '.');
    if (point && !strcmp(point, ".onnx")) {
        fprintf(stderr, "weft: %s: an ONNX file has one graph, number 0\n", path);
        return WEFT_EXIT_FAILED;
    }
    struct parse parse = {.context = context, .path = path, .number = (uint32_t)number};
    const int status = weft_protected(context, parse_numbered, &parse);
    weft_blob_drop(parse.file);
    if (status >= 0)
        *ret_graph = parse.graph;
    return status < 0 ? WEFT_EXIT_FAILED : WEFT_EXIT_OK;
}
