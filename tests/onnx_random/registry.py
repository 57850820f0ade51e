# SPDX-License-Identifier: Apache-2.0
"""The functions that draw nodes, by weight."""
DRAWERS = {}


def op(weight=1):
    def register(function):
        DRAWERS[function.__name__] = (function, weight)
        return function
    return register
