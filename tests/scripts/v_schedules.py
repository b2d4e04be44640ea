#!/usr/bin/env python3
"""v_schedules.py - prints V-Half and V-Min of "Pipeline Parallelism with Controllable Memory" (Qi et al. 2024) as CSV.

    v_schedules.py Half|Min RANKS MICRO_BATCHES

Each rank has two stages: rank i has stages i and 2p-1-i, so that a micro-batch goes down the ranks and comes back, a V.
A *building block* says when one micro-batch has its passes on each rank, in units of one pass (F = I = W = 1).  The
block repeats every 6 units, so the six passes of a rank must differ modulo 6:

    rank 0   F . . . . . . F I . . . . . . I        stages 0 and 7 of 8
    rank 1   . F . . . . F . . I . . . . I .        stages 1 and 6
    rank 2   . . F . . F . . . . I . . I . .        stages 2 and 5
    rank 3   . . . F F . . . . . . I I . . .        stages 3 and 4: this is V-Min, a step of 1 from rank to rank

The longer a micro-batch is on its way, the more activations are kept.  It takes 4 units per rank in V-Min, and 6 in
V-Half, where it comes back by steps of 2; with 12 it would keep as much as 1F1B.  W fills the units that are left.
Each rank then does its passes in the order of these times, as soon as it can.
"""
import itertools
import sys

PERIOD = 6


def times(p, down, up, turns):
    """When micro-batch 0 has F low, F high, I high and I low on each rank: low is the stage of the smaller number."""
    low_f = [down * i for i in range(p)]
    high_f = [low_f[p - 1] + turns[0] + up * (p - 1 - i) for i in range(p)]
    high_i = [high_f[0] + turns[1] + down * i for i in range(p)]
    low_i = [high_i[p - 1] + turns[2] + up * (p - 1 - i) for i in range(p)]
    return list(zip(low_f, high_f, high_i, low_i))


def turns_of(kind, p):
    """What the three turns of the V take, so that no passes meet: of all that keep least, the shortest step."""
    if kind == "Half":
        return (2, 1, 1) if p % 2 else (4, 1, 5)
    return (1, 1, 1) if p % 3 else (3, 1, 3)


def first_after(time, unit):
    return next(t for t in itertools.count(time + 1) if t % PERIOD == unit)


def units_of_w(passes):
    """When W of both stages are: in the two units that are left, the sum of both waits as short as can be."""
    free = [unit for unit in range(PERIOD) if unit not in {t % PERIOD for t in passes}]
    choices = [(first_after(passes[2], a), first_after(passes[3], b)) for a, b in (free, free[::-1])]
    return min(choices, key=sum)


def row(p, micros, i, passes):
    """The cells of rank i, in order of time."""
    low, high = i, 2 * p - 1 - i
    cells = []
    high_w, low_w = units_of_w(passes)
    for m in range(micros):
        at = PERIOD * m
        cells += [(passes[0] + at, f"{low}F{m}"), (passes[1] + at, f"{high}F{m}"),
                  (passes[2] + at, f"{high}I{m}"), (passes[3] + at, f"{low}I{m}")]
        cells += [(high_w + at, f"{high}W{m}"), (low_w + at, f"{low}W{m}")]
    return ",".join(name for _, name in sorted(cells))


def main():
    kind, p, micros = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    down, up = {"Half": (1, 2), "Min": (1, 1)}[kind]
    block = times(p, down, up, turns_of(kind, p))
    for i in range(p):
        print(row(p, micros, i, block[i]))


if __name__ == "__main__":
    main()
