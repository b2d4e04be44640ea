#!/usr/bin/env python3
"""kineto2yard.py - makes a step file for `yard plan --list` of a trace that torch.profiler wrote on one rank.

    in the trace                                        in the step file
    host      | aten::mm: launch k | launch s ...       task aten::mm host.cpu 46us
    stream 7            [ kernel k ]                    task k gpu.compute 100us after=aten::mm
    stream 20                       [ all-reduce s ]    task s gpu.download 250us after=all_reduce,k

A stream is a lane: `download` if most of its time goes to collectives (NCCL), `upload` if most goes to copies from the
host, else `compute`.  All threads that launch work are one lane, host.cpu: its tasks reach from one launch to the next.
A task of the GPU waits for its launch, for the task before it on its stream, and for what a cudaStreamWaitEvent names.
The host waits where a call blocks it.  What begins later than all of this explains is reported.

Times are microseconds, as in the trace.  Only the standard library is needed.
"""
import argparse
import bisect
import collections
import gzip
import json
import math
import statistics
import sys
import zlib

GPU = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}  # categories, which older traces capitalize
RUNTIME = {"cuda_runtime", "cuda_driver", "runtime"}
LATE = 20  # a task that begins so much later than it could has no known cause
LONGEST = 31  # bytes of a name; a step file allows 39, and a number may follow


def fail(path, what):
    sys.exit(f"kineto2yard: {path} {what}")


# ---- the trace -------------------------------------------------------------------------------------------------------


def category(event):
    return str(event.get("cat", "")).lower()


def argument(event, key):
    value = event.get("args", {}).get(key)
    return value if isinstance(value, int) else None


def thread(event):
    return str(event.get("tid"))


def end_of(event):
    return event["ts"] + event["dur"]


def read_spans(path):
    """The trace's events that have a beginning and a duration, by time."""
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
            trace = json.load(file)
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as wrong:
        fail(path, f"is not a trace: {wrong}")
    events = trace.get("traceEvents") if isinstance(trace, dict) else None
    if not isinstance(events, list):
        fail(path, "is not a trace: it has no list traceEvents")
    spans = [e for e in events if isinstance(e, dict) and e.get("ph") == "X"]
    for number, e in enumerate(spans):
        for key in ("ts", "dur"):
            if not isinstance(e.get(key), (int, float)) or not 0 <= e[key] < 1e18:
                fail(path, f"has no time {key} in its span {number}, {str(e.get('name'))[:40]}")
        if not isinstance(e.get("name"), str) or not isinstance(e.get("args", {}), dict):
            fail(path, f"has no name, or no object of args, in its span {number}")
    return sorted(spans, key=lambda e: e["ts"])


def find_window(path, spans, wanted):
    """Begin and end of the steps A-B that are wanted; None: of the one in the middle, or all where none is marked."""
    steps = {}
    for e in spans:
        number = e["name"].partition("ProfilerStep#")[2]
        if category(e) == "user_annotation" and number.isdecimal():
            steps[int(number)] = e
    if not steps and not wanted:
        return spans[0]["ts"], max(end_of(e) for e in spans)
    first, _, last = (wanted or str(sorted(steps)[len(steps) // 2])).partition("-")
    last = last or first
    for number in (first, last):
        if not number.isdecimal() or int(number) not in steps:
            fail(path, f"has no step {number}, but {', '.join(map(str, sorted(steps))) or 'none'}")
    following = steps.get(int(last) + 1)
    return steps[int(first)]["ts"], following["ts"] if following else end_of(steps[int(last)])


def short(name):
    """A name as step files allow it: without types, arguments and words that say nothing."""
    for word in ("void ", "at::native::", "(anonymous namespace)::", "autograd::engine::evaluate_function: "):
        name = name.replace(word, "")
    name = name.split("<")[0].split("(")[0].strip() or "task"
    name = "".join("_" if c in " []=,#'" or not c.isprintable() else c for c in name)
    return name.encode()[:LONGEST].decode(errors="ignore")


# ---- work of the GPU, and what it waits for --------------------------------------------------------------------------


class Work:
    """A task of the GPU, or what the host does up to a launch."""

    def __init__(self, name, lane, start, end, call=None):
        self.name = name
        self.lane = lane  # the stream's number; the host's lane has a name
        self.start = start
        self.end = end
        self.call = call  # the host's call that launched it
        self.after = []  # the works that it waits for, but for the one before it on its lane


class Stream:
    """Tasks in the order of their launches."""

    def __init__(self, works):
        self.works = works
        self.launched = [w.call["ts"] for w in works]

    def last_before(self, time):
        at = bisect.bisect_left(self.launched, time)
        return self.works[at - 1] if at > 0 else None

    def first_after(self, time):
        at = bisect.bisect_right(self.launched, time)
        return self.works[at] if at < len(self.works) else None


def find_works(path, spans, calls):
    """The GPU's tasks in the order of their launches, and the number of those whose launch is not in the trace."""
    gpu = [e for e in spans if category(e) in GPU]
    if len({argument(e, "device") for e in gpu}) > 1:
        fail(path, "has work of several GPUs, but a list is of one rank")
    works = []
    for e in gpu:
        call = calls.get(argument(e, "correlation"))
        if call:
            works.append(Work(short(e["name"]), argument(e, "stream"), e["ts"], end_of(e), call))
    if not works:
        fail(path, "has no work of a GPU: profile with ProfilerActivity.CUDA, on a machine that has one")
    works.sort(key=lambda w: (w.call["ts"], w.start))
    return works, len(gpu) - len(works)


def add_known_waits(spans, calls, streams):
    """Waits as events of category cuda_sync tell them; False: the trace has none of these."""
    nothing = Stream([])
    waits = [e for e in spans if category(e) == "cuda_sync" and e["name"] == "Stream Wait Event"]
    for e in waits:
        wait = calls.get(argument(e, "correlation"))
        record = calls.get(argument(e, "wait_on_cuda_event_record_corr_id"))
        if wait and record:
            waiting = streams.get(argument(e, "stream"), nothing).first_after(wait["ts"])
            awaited = streams.get(argument(e, "wait_on_stream"), nothing).last_before(record["ts"])
            if waiting and awaited:
                waiting.after.append(awaited)
    return bool(waits)


def guess_waits(spans, works, streams):
    """Else the task that is launched next waits for the latest of every other stream, if that had ended by then."""
    all_works = Stream(works)
    for e in spans:
        waiting = all_works.first_after(e["ts"]) if e["name"].endswith("StreamWaitEvent") else None
        for lane, stream in streams.items():
            awaited = stream.last_before(e["ts"]) if waiting and lane != waiting.lane else None
            if awaited and awaited.end <= waiting.start:
                waiting.after.append(awaited)


def measure(streams):
    """By stream the gap between tasks that queue, and the time from a launch's call until it takes effect."""
    gaps = collections.defaultdict(list)
    idle = []  # from the call to the start of a task whose stream had nothing to do
    for lane, stream in streams.items():
        for before, w in zip(stream.works, stream.works[1:]):
            if not w.after and before.end <= w.call["ts"]:
                idle.append(w.start - w.call["ts"])
            elif not w.after and before.end <= w.start:
                gaps[lane].append(w.start - before.end)
    every = [gap for lane in gaps.values() for gap in lane] or [0]
    gap = {lane: statistics.median(gaps.get(lane) or every) for lane in streams}
    effect = sorted(idle)[len(idle) // 10] if idle else 0
    return gap, max(0, effect - statistics.median(every))


# ---- the list --------------------------------------------------------------------------------------------------------


def outermost_ops(spans):
    """By thread, its operations that are in no other."""
    ops = collections.defaultdict(list)
    for e in spans:
        mine = ops[thread(e)]
        if category(e) in ("cpu_op", "operator") and (not mine or e["ts"] >= end_of(mine[-1])):
            mine.append(e)
    return ops


def name_of_call(call, ops):
    while ops and end_of(ops[0]) <= call["ts"]:
        ops.pop(0)
    inside = ops and ops[0]["ts"] <= call["ts"]
    return short(ops[0]["name"] if inside else call["name"])


def list_works(spans, works, window, effect):
    """The host's pieces and the GPU's tasks of the window, in the order of the launches."""
    begin, end = window
    ops = outermost_ops(spans)
    launched = collections.defaultdict(list)
    for w in works:
        launched[id(w.call)].append(w)
    threads = {thread(w.call) for w in works}
    by_end = sorted(works, key=lambda w: w.end)
    ends = [w.end for w in by_end]
    listed, now, blocker = [], begin, []
    for call in spans:
        if category(call) not in RUNTIME or thread(call) not in threads or not begin <= call["ts"] < end:
            continue
        mine = launched[id(call)]
        last = by_end[bisect.bisect_right(ends, end_of(call)) - 1]  # the last that ended before the call did
        blocks = call["ts"] < last.end <= end_of(call) and ("Synchronize" in call["name"] or last in mine)
        if not mine and not blocks:
            continue
        until = max(now, call["ts"] + (effect if mine else 0))
        piece = Work(name_of_call(call, ops[thread(call)]), "host.cpu", now, until)
        piece.after, blocker, now = blocker, [], until
        listed.append(piece)
        for w in mine:
            w.after.append(piece)
            listed.append(w)
        if blocks:
            blocker = [last]
            now = max(now, last.end)
    rest = Work("host", "host.cpu", now, max(now, end))
    rest.after = blocker
    return listed + [rest]


def find_late(works, gap):
    """By task of the GPU: how much later it began than all that it waits for explains."""
    late, ended = {}, {}
    for w in works:
        ready = max([ended.get(w.lane, -math.inf)] + [p.end for p in w.after])
        ended[w.lane] = w.end
        late[w] = w.start - ready - gap[w.lane]
    return late


def add_unknown(listed, late, gap):
    """Before a late task, on its lane, comes what nobody knows."""
    longer = []
    for w in listed:
        if w in late:
            unknown = Work("unknown", w.lane, 0, max(0, late[w] - gap[w.lane]))
            unknown.after, w.after = w.after, []
            longer.append(unknown)
        longer.append(w)
    return longer


def find_awaited(listed):
    """By task: what it waits for, with its mark.  For what ran before the window stands the last task of its lane."""
    last = {w.lane: w for w in listed}
    known = set(listed)
    above = set()
    awaited = {}
    for w in listed:
        awaited[w] = [(p, "") for p in dict.fromkeys(w.after) if p in above]
        before = [last[p.lane] for p in w.after if p not in known and p.lane in last]
        awaited[w] += [(p, "'") for p in dict.fromkeys(before)]
        above.add(w)
    return awaited


def name_awaited(listed, awaited):
    """NAME means the last task of that name above, NAME' the last of all: others that are meant get a number."""
    means, mistaken = {}, []
    last = {w.name: w for w in listed}
    for w in listed:
        mistaken += [p for p, mark in awaited[w] if (last if mark else means)[p.name] is not p]
        means[w.name] = w
    for number, p in enumerate(dict.fromkeys(mistaken), 2):
        p.name += f"~{number}"


def kind_of(work):
    """The kind of lane that it belongs on."""
    if "nccl" in work.name.lower():
        return "download"
    return "upload" if "HtoD" in work.name else "compute"


def name_lanes(streams):
    """By stream its lane.  A device's first lane of a kind has no number: the busiest stream gets it."""
    def busy(stream):
        return sum(w.end - w.start for w in stream.works)
    names, count = {"host.cpu": "host.cpu"}, collections.Counter()
    for lane, stream in sorted(streams.items(), key=lambda item: -busy(item[1])):
        time = collections.Counter()
        for w in stream.works:
            time[kind_of(w)] += w.end - w.start
        kind = time.most_common(1)[0][0]
        names[lane] = f"gpu.{kind}{count[kind] or ''}"
        count[kind] += 1
    return names


def role_of(work):
    """What the viewer and the causes of idle time say of it."""
    name = work.name.lower()
    if work.call and "htod" in name:
        return " role=feed"
    return " role=reduce" if work.call and "nccl" in name and "reduce" in name else ""


def microseconds(time):
    return f"{time:.3f}".rstrip("0").rstrip(".") + "us"


def write_list(listed, lanes, gap):
    awaited = find_awaited(listed)
    name_awaited(listed, awaited)
    print("device gpu memory=1G  # no task has a tensor")
    for stream in gap:
        print(f"lane {lanes[stream]} gap={microseconds(gap[stream])}")
    for w in listed:
        after = ",".join(p.name + mark for p, mark in awaited[w])
        after = f" after={after}" if after else ""
        print(f"task {w.name} {lanes[w.lane]} {microseconds(w.end - w.start)}{role_of(w)}{after}")


def main():
    options = argparse.ArgumentParser(description="Prints a step file of one rank's PyTorch profiler trace.")
    options.add_argument("trace", help="JSON of torch.profiler; one whose name ends in .gz is compressed")
    options.add_argument("--steps", metavar="A[-B]", help="ProfilerSteps, as one list; else the one in the middle")
    options.add_argument("--unknown", action="store_true", help="what is late without a cause becomes a task")
    words = options.parse_args()
    spans = read_spans(words.trace)
    calls = {argument(e, "correlation"): e for e in spans if category(e) in RUNTIME}
    calls.pop(None, None)
    works, lost = find_works(words.trace, spans, calls)
    window = find_window(words.trace, spans, words.steps)
    streams = {lane: Stream([w for w in works if w.lane == lane]) for lane in {w.lane: None for w in works}}
    if not add_known_waits(spans, calls, streams):
        guess_waits(spans, works, streams)
    gap, effect = measure(streams)
    listed = list_works(spans, works, window, effect)
    mine = [w for w in listed if w.call]
    if not mine:
        fail(words.trace, "has no work of a GPU that was launched in these steps")
    late = find_late(works, gap)
    late = {w: late[w] for w in mine if late[w] > LATE}
    earlier = [w.end for w in works if w.call["ts"] < window[0]]
    period = max(w.end for w in mine) - max(earlier or [window[0]])
    if words.unknown:
        listed = add_unknown(listed, late, gap)
    print(f"# {words.trace}: {period / 1e3:.3f} ms from the last work of the step before to the last of these")
    write_list(listed, name_lanes(streams), gap)
    print(f"measured: {period / 1e3:.3f} ms; late without a cause in the trace: {sum(late.values()) / 1e3:.3f} ms, "
          f"of {len(late)} tasks", file=sys.stderr)
    if lost:
        print(f"left out: {lost} tasks whose launch is not in the trace", file=sys.stderr)


main()
