/* SPDX-License-Identifier: Apache-2.0 */
/* weft.c: the command. Finds the subcommand in a table and hands over; all else is in the file of the subcommand's
 * name. */
#include "tools/tools.h"

#include "ir/suggest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* One row a subcommand, in the order in which a new user meets them. */
static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"run", weft_cmd_run, "compile a model and run it; compare with expected outputs"},
    {"check", weft_cmd_check, "plan a model without running it; name every unsupported op"},
    {"conform", weft_cmd_conform, "run the ONNX backend tests"},
    {"bench", weft_cmd_bench, "measure a model"},
    {"calibrate", weft_cmd_calibrate, "measure the costs by which layouts are chosen on this machine"},
    {"dot", weft_cmd_dot, "draw a model's plan"},
    {"explain", weft_cmd_explain, "what became of each node, and why"},
    {"diff", weft_cmd_diff, "two plans side by side, with times"},
    {"bisect", weft_cmd_bisect, "which rewrite, group or kernel makes an answer wrong"},
    {"reduce", weft_cmd_reduce, "a model with a wrong answer made small"},
    {"report", weft_cmd_report, "all of that, with pictures and times, as one page of HTML"},
    {"opt", weft_cmd_opt, "run passes on text; run golden tests"},
    {NULL, NULL, NULL},
};

static void print_help(FILE *to)
{
    fputs("usage: weft SUBCOMMAND [options] …\n"
          "       weft SUBCOMMAND --help, weft help SUBCOMMAND\n"
          "       weft --version\n\n"
          "weft compiles tensor graphs (ONNX files or weft text) for this CPU and runs them.\n\n",
          to);
    for (const struct command *c = commands; c->name; c++)
        fprintf(to, "  %-9s %s\n", c->name, c->help);
    fputs("\nExit codes: 0 success, 1 failure, 2 wrong usage.\n", to);
}

/* A caller may have closed the standard streams. The next files opened would take their numbers, and what is printed
 * would end up in a model's outputs. So the numbers are taken, by files that refuse what the streams are used for. */
static void hold_standard_streams(void)
{
    for (int stream = 0; stream < 3; stream++)
        if (fcntl(stream, F_GETFD) == -1 && open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) != stream)
            return;
}

/* What was printed and could not be written, because the disk is full, say, was not printed. */
static int close_output(int code)
{
    errno = 0;
    if ((!fflush(stdout) && !ferror(stdout)) || code != WEFT_EXIT_OK)
        return code;
    fprintf(stderr, "weft: standard output: %s\n", errno ? strerror(errno) : "it cannot be written to");
    return WEFT_EXIT_FAILED;
}

static const struct command *find_command(const char *name)
{
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(name, c->name))
            return c;
    struct weft_suggest suggest;
    weft_suggest_open(&suggest, name, strlen(name));
    for (const struct command *c = commands; c->name; c++)
        weft_suggest_offer(&suggest, c->name);
    weft_suggest_offer(&suggest, "help");
    fprintf(stderr, "weft: no subcommand '%s'%s; see weft --help\n", name, weft_suggest_text(&suggest, ""));
    return NULL;
}

/* weft help, weft help run. */
static int help(int argc, char **argv)
{
    if (argc > 3) {
        fprintf(stderr, "weft: '%s' is one word too many: weft help takes a subcommand\n", argv[3]);
        return WEFT_EXIT_USAGE;
    }
    if (argc < 3) {
        print_help(stdout);
        return WEFT_EXIT_OK;
    }
    const struct command *c = find_command(argv[2]);
    char option[] = "--help", *asked[] = {argv[2], option, NULL};
    return c ? c->run(2, asked) : WEFT_EXIT_USAGE;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return WEFT_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        print_help(stdout);
        return WEFT_EXIT_OK;
    }
    if (!strcmp(argv[1], "help"))
        return help(argc, argv);
    if (!strcmp(argv[1], "--version")) {
        printf("weft %s\n", weft_version());
        return WEFT_EXIT_OK;
    }
    const struct command *c = find_command(argv[1]);
    return c ? c->run(argc - 1, argv + 1) : WEFT_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    hold_standard_streams();
    weft_tool_catch_signals();
    return weft_tool_end(close_output(dispatch(argc, argv)));
}
