/* SPDX-License-Identifier: Apache-2.0 */
/* tools.h: what the subcommands of `weft` share. A subcommand is a function `int weft_cmd_<name>(int argc, char **argv)` in a
 * file of its name; argv[0] is the subcommand's word. It prints results to stdout and complaints to stderr, and returns
 * an exit code. Commands that need nothing but the public header use nothing else. */
#ifndef WEFT_TOOLS_H
#define WEFT_TOOLS_H

#include "weft/weft.h"

enum weft_exit {
    WEFT_EXIT_OK = 0,
    WEFT_EXIT_FAILED = 1, /* the work could not be done, or a comparison failed */
    WEFT_EXIT_USAGE = 2,  /* the command line makes no sense; stderr says why and names --help */
};

int weft_cmd_bench(int argc, char **argv);
int weft_cmd_check(int argc, char **argv);
int weft_cmd_dot(int argc, char **argv);
int weft_cmd_opt(int argc, char **argv);
int weft_cmd_run(int argc, char **argv);

#endif
