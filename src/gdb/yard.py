"""gdb speaks the list.  gdb loads this file with the program (see tutorials/reference-debugging.md).

    yard lanes                  what each lane runs, what that waits for, what comes next
    yard task N                 what task N reads and writes, its edges in words, its kernel and arguments
    yard tensor NAME [N]        shape, place, who uses it, is it live now, values; N: the one that task N touches
    yard tensor NAME[B,H] [N] [FILE]                 values of a slice; FILE.npy or FILE.pgm, a picture, gets them
    yard waits N                why task N has not started
    yard break TASK [step=K] [layer=L] [micro=M]     stop before a task runs, or is issued to its lane
    yard next-task              go on to the next one
    yard step-list PASS         go on to the next edit that the pass makes, and show what it changed
    yard diff [LIST]            what has changed in a list since it was looked at last

Everything is read from memory: no function of the program is called, so all of it but `break`, `next-task` and
`step-list` works in a kernel and on a core file too.  The list is found in the frames of the threads.

Names are those of the C: `list` is a struct list, a list of tasks, and hides Python's own type of that name.

From top to bottom:

    values of C                     numbers, texts, arrays
    where the program is            threads and frames; which list is worked on, which task is issued
    words for tasks ... tensors     what the commands say of them
    the list as it is now           while it is edited; what differs from before
    instances                       what lanes have been given, and what still holds an instance
    commands                        a class for each of those above
    pretty-printers                 how gdb's own `print` shows a task or a tensor
"""
import difflib
import gdb
import os
import struct

FOUND = {}  # lists by name, as they were seen last: for `diff`


# ---- values of C -----------------------------------------------------------------------------------------------------

def text(value):
    return value.string(errors="replace")


def items(pointer, n):
    return [pointer[i] for i in range(int(n))]


def constant(name):
    """The value of an enumerator of the program."""
    return int(gdb.parse_and_eval(name))


def bytes_of(n):
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size:
            return "%.4g %s" % (n / size, unit)
    return "%d B" % n


def enum_word(value, prefix):
    return str(value).replace(prefix, "").lower()


# ---- where the program is --------------------------------------------------------------------------------------------

def process():
    """The selected thread, where there is a process or a core file."""
    here = gdb.selected_thread()
    if here is None:
        raise gdb.GdbError("nothing runs: `run` first, or load a core file")
    return here


def frames():
    """Those of the selected thread, then those of the others."""
    here = process()
    chosen = gdb.selected_frame()
    threads = [here] + [t for t in gdb.selected_inferior().threads() if t.num != here.num]
    try:
        for thread in threads:
            thread.switch()
            frame = gdb.newest_frame()
            while frame is not None and frame.is_valid():
                yield frame
                frame = frame.older()
    finally:
        here.switch()
        chosen.select()


def arguments(frame):
    """The values of a function's arguments, in their order."""
    block = frame.block()
    while block.function is None:
        block = block.superblock
    return [symbol.value(frame) for symbol in block if symbol.is_argument]


def variables(frame):
    """(name, value) of the arguments and locals of a frame of ours."""
    try:
        block = frame.block()
    except RuntimeError:
        return
    while block is not None and not block.is_global and not block.is_static:
        for symbol in block:
            if symbol.is_argument or symbol.is_variable:
                try:
                    value = symbol.value(frame)
                    if not value.is_optimized_out:
                        yield symbol.name, value
                except (gdb.error, TypeError):
                    pass
        block = block.superblock


# By the name of a struct: how a list is reached from a pointer to such a struct.
LIST_OF = {
    "list": lambda v: v,
    "trainer": lambda v: v["train_list"],
    "edit": lambda v: v["list"],
    "issue": lambda v: v["list"],
    "job": lambda v: v["list"],
}


def pointed(value):
    kind = value.type.strip_typedefs()
    if kind.code != gdb.TYPE_CODE_PTR:
        return None
    target = kind.target().strip_typedefs().unqualified()
    return target.tag if target.code == gdb.TYPE_CODE_STRUCT else None


def is_list(list):
    """Does that pointer lead to a list that has been built?"""
    try:
        if int(list) == 0 or int(list["pool"]) == 0:
            return False
        return 0 < int(list["n"]) <= constant("MOST_TASKS") and text(list["name"]) != ""
    except (gdb.error, gdb.MemoryError):
        return False


def pointers_to(tags):
    """(struct's name, pointer) of each variable of a frame that leads to a struct of one of these names."""
    for frame in frames():
        for _, value in variables(frame):
            tag = pointed(value)
            if tag in tags and int(value) != 0:
                yield tag, value


def find_list(name=None):
    """The list that the nearest frame works on; with a name: that list."""
    for tag, value in pointers_to(LIST_OF):
        try:
            list = LIST_OF[tag](value)
            if is_list(list) and name in (None, text(list["name"])):
                return list.dereference()
        except (gdb.error, gdb.MemoryError):
            pass
    wanted = " '%s'" % name if name else ""
    raise gdb.GdbError("no list%s is in sight: no frame of any thread has one" % wanted)


def find_alone():
    """(list, iteration, position) of the task that the selected thread runs by run_alone(), or None."""
    frame = gdb.newest_frame()
    while frame is not None and frame.is_valid():
        if frame.name() == "run_alone":
            try:
                list, task, iteration = arguments(frame)[:3]
                return list.dereference(), int(iteration), int(task["index"])
            except (gdb.error, ValueError, RuntimeError):  # the compiler has kept no value of them
                return None
        frame = frame.older()
    return None


def find_running():
    """(list, iteration, position) of the task that runs alone, else of the one at which execute() is, or None."""
    process()
    alone = find_alone()
    if alone is not None:
        return alone
    now = gdb.parse_and_eval("execution.now")
    if int(now["list"]) == 0:
        return None
    return now["list"].dereference(), int(now["iteration"]), int(now["task"]["index"])


def is_serial():
    return bool(gdb.parse_and_eval("execution.serial"))


# ---- words for tasks, edges and tensors ------------------------------------------------------------------------------

def tags(t):
    words = []
    if int(t["layer"]) >= 0:
        words.append("layer %d" % int(t["layer"]))
    if int(t["micro"]) >= 0:
        words.append("micro-batch %d" % int(t["micro"]))
    return " (%s)" % ", ".join(words) if words else ""


def name_task(t):
    return "task %d %s%s on %s" % (int(t["index"]), text(t["name"]), tags(t), text(t["lane"]["name"]))


def shape_of(x):
    return "(%s)" % ", ".join(str(int(d)) for d in items(x["shape"]["size"], x["shape"]["n_dims"]))


def storage_of(x):
    return x if int(x["storage"]) == 0 else x["storage"].dereference()


def name_tensor(x):
    return "%s %s on %s" % (text(x["name"]), shape_of(x), text(x["device"]["id"]))


def tensors_of(t, mode):
    return [a["tensor"].dereference() for a in items(t["accesses"], t["n_accesses"]) if int(a["mode"]) & mode]


READ, WRITE = 1, 2  # ACCESS_READ and ACCESS_WRITE; a tensor may have both


def touched_by(mode):
    if mode == READ | WRITE:
        return "changed by"
    return "written by" if mode & WRITE else "read by"


def address_of(x):
    """Where its first byte lies in this process, or None."""
    base = storage_of(x)
    if int(base["slab"]) < 0:
        return None
    slab = base["device"]["slabs"][int(base["slab"])]
    start = int(slab["host"]) or int(slab["debug_view"])
    return start + int(base["address"]) + int(x["offset"]) if start else None


def reason(list, t, edge):
    """Why task t has that edge."""
    before = list["tasks"][int(edge["producer"])]
    mine = {int(a["tensor"]["storage"] or a["tensor"]): a for a in items(t["accesses"], t["n_accesses"])}
    for a in items(before["accesses"], before["n_accesses"]):
        other = mine.get(int(a["tensor"]["storage"] or a["tensor"]))
        if other is not None and (int(a["mode"]) | int(other["mode"])) & WRITE:
            verb = "writes" if int(a["mode"]) & WRITE else "reads"
            mine_verb = "reads" if int(a["mode"]) & WRITE and int(other["mode"]) & READ else "overwrites"
            return "which %s %s, that it %s" % (verb, text(a["tensor"]["name"]), mine_verb)
    return "which has bytes that it takes" if "REUSE" in str(edge["kind"]) else "which it follows"


def describe_edge(list, t, edge):
    before = list["tasks"][int(edge["producer"])].dereference()
    when = " of the step before" if edge["previous"] else ""
    how = "" if edge["needs_wait"] else " (implied)"
    return "%s%s, %s%s" % (name_task(before), when, reason(list, t, edge), how)


def task_at(list, number):
    """By its name, else by its number: the program may have a variable that is named as a task is."""
    i = next((int(t["index"]) for t in items(list["tasks"], list["n"]) if text(t["name"]) == number), None)
    try:
        i = int(number, 0) if i is None else i
    except ValueError:
        raise gdb.GdbError("list %s has no task %s: `yard lanes` shows some, `yard plan --print` all" %
                           (text(list["name"]), number))
    if not 0 <= i < int(list["n"]):
        raise gdb.GdbError("list %s has tasks 0 to %d, not %d" % (text(list["name"]), int(list["n"]) - 1, i))
    return list["tasks"][i].dereference()


# ---- the list as it is now -------------------------------------------------------------------------------------------

def order(list):
    """Its tasks: while it is edited by their chain, which begins at list->extra.sentinel."""
    if int(list["extra"]["sentinel"]) == 0:
        return [t.dereference() for t in items(list["tasks"], list["n"])]
    tasks, t = [], list["extra"]["sentinel"]["next"]
    while int(t) != int(list["extra"]["sentinel"]):  # a closed chain
        tasks.append(t.dereference())
        t = t["next"]
    return tasks


def line(t):
    """As `yard plan --print` writes it: NAME@DEVICE where a tensor lies elsewhere."""
    def names(mode):
        there = [(x, int(x["device"]) != int(t["lane"]["device"])) for x in tensors_of(t, mode)]
        return ", ".join(text(x["name"]) + ("@" + text(x["device"]["id"]) if away else "") for x, away in there) or "-"
    reads, writes = names(READ), names(WRITE)
    return "%s%s on %s: %s -> %s" % (text(t["name"]), tags(t), text(t["lane"]["name"]), reads, writes)


def picture(list):
    """(address, line, addresses of its tensors) of each task, in order."""
    return [(int(t.address), line(t), [int(a["tensor"]) for a in items(t["accesses"], t["n_accesses"])])
            for t in order(list)]


def sign_of(task, old, moved):
    """What has happened to a task since it was `old`: None where nothing has."""
    address = task[0]
    if address not in old:
        return "+"
    if address in moved:
        return ">"
    return "~" if old[address] != task else None


def show_difference(name, before, after):
    """+ new, - gone, ~ changed, > moved: with the task that it comes after."""
    old, new = {t[0]: t for t in before}, {t[0]: t for t in after}
    moved = moved_ones([t[0] for t in before if t[0] in new], [t[0] for t in after if t[0] in old])
    before_it, shown = "the start", 0
    for task in after:
        address, words, _ = task
        sign = sign_of(task, old, moved)
        if sign:
            print("  %s %s   after %s" % (sign, words, before_it.split(": ")[0]))
            shown += 1
        before_it = words
    for address, words, _ in before:
        if address not in new:
            print("  - %s" % words)
            shown += 1
    if not shown:
        print("  list %s has not changed" % name)


def moved_ones(old, new):
    """Those outside of a longest common order."""
    import bisect
    at = {a: i for i, a in enumerate(old)}
    tails, ends, before = [], [], {}
    for a in new:
        i = bisect.bisect_left(tails, at[a])
        before[a] = ends[i - 1] if i else None
        tails[i:i + 1], ends[i:i + 1] = [at[a]], [a]
    kept, a = set(), ends[-1] if ends else None
    while a is not None:
        kept.add(a)
        a = before[a]
    return {a for a in new if a not in kept}


# ---- instances -------------------------------------------------------------------------------------------------------

def lane_instances(list, lane):
    """(task, iteration) of what a lane has been given and has not been seen to end, in its order."""
    running = list["running"]
    if int(running) == 0 or lane >= int(running["n_lanes"]):
        return []
    of_lane = running["lane_instances"][lane]
    given, retired, cap = (int(of_lane[field]) for field in ("given", "retired", "cap"))
    instances = [of_lane["instances"][n % cap] for n in range(retired, given)] if cap else []
    return [(list["tasks"][int(r["task_index"])].dereference(), int(r["iteration"])) for r in instances]


def open_producers(list, t, number):
    """Edges of an instance that still hold it: (edge, producer, iteration)."""
    held = []
    for e in items(t["edges"], t["n_edges"]):
        if not e["needs_wait"]:
            continue
        before, run = list["tasks"][int(e["producer"])].dereference(), number - int(e["previous"])
        if any(int(u["index"]) == int(before["index"]) and k <= run
               for u, k in lane_instances(list, int(before["lane"]["index"]))):
            held.append((e, before, run))
    return held


# ---- commands --------------------------------------------------------------------------------------------------------

class Yard(gdb.Command):
    __doc__ = __doc__

    def __init__(self):
        super().__init__("yard", gdb.COMMAND_USER, prefix=True)


class Command(gdb.Command):
    def __init__(self, name):
        self.name = name
        super().__init__("yard " + name, gdb.COMMAND_USER)

    def invoke(self, argument, from_tty):
        try:
            self.run(gdb.string_to_argv(argument))
        except gdb.error as e:  # memory that cannot be read, code without debugging information
            raise gdb.GdbError("yard %s: %s" % (self.name, str(e).strip().split("\n")[0]))

    def one(self, words, what):
        if len(words) != 1:
            raise gdb.GdbError("yard %s takes %s" % (self.name, what))
        return words[0]

    def none(self, words):
        if words:
            raise gdb.GdbError("yard %s takes no words" % self.name)


class Lanes(Command):
    """What each lane runs, what that waits for, and what it has next."""

    def run(self, words):
        self.none(words)
        list = find_list()
        machine = list["pool"]["machine"]
        now = find_running()
        iteration = ", iteration %d" % now[1] if now else ""
        print("list %s, %d tasks%s" % (text(list["name"]), int(list["n"]), iteration))
        at = now[2] if now else -1
        for lane in items(machine["lanes"], machine["n_lanes"]):
            mine = [t for t in items(list["tasks"], list["n"]) if int(t["lane"]) == int(lane)]
            if not mine:
                continue
            runs = lane_instances(list, int(lane["index"]))
            if now and is_serial():
                runs = [(t.dereference(), now[1]) for t in mine if int(t["index"]) == at]
            what = "idle"
            if runs:
                t, number = runs[0]
                what = "%s of step %d" % (name_task(t).rsplit(" on ", 1)[0], number)
                held = open_producers(list, t, number)
                what += "".join("\n%22s waits for %s of step %d" % ("", name_task(p), k) for _, p, k in held)
                what += "; %d more after it" % (len(runs) - 1) if len(runs) > 1 else ""
            later = [t for t in mine if int(t["index"]) > at]
            then = "; next: " + name_task(later[0]).rsplit(" on ", 1)[0] if later else ""
            print("  %-20s %s%s" % (text(lane["name"]), what, then))


class Task(Command):
    """yard task N: what task N of the list reads and writes, waits for, and does."""

    def run(self, words):
        list = find_list()
        t = task_at(list, self.one(words, "a task: its number, or its name"))
        print("%s, %s" % (name_task(t), enum_word(t["role"], "ROLE_")))
        for mode, word in ((READ, "reads "), (WRITE, "writes")):
            for x in tensors_of(t, mode):
                address = address_of(x)
                place = ", at 0x%x" % address if address else ""
                print("  %s %s, %s, %s%s" % (word, name_tensor(x), enum_word(x["class"], "MEM_"),
                                             bytes_of(int(x["bytes"])), place))
        edges = items(t["edges"], t["n_edges"])
        for e in edges:
            print("  waits for %s" % describe_edge(list, t, e))
        if not edges:
            print("  waits for nothing")
        if int(t["file"]):
            print("  kernel %s of cl/%s" % (text(t["kernel"]), text(t["file"]).split("/")[-1]))
            print("  arguments %s" % ", ".join(self.argument(t, a) for a in items(t["args"], t["n_args"])))
            g = t["grid"]
            sizes = [" x ".join(str(int(n)) for n in items(g[f], g["dims"])) for f in ("global", "local")]
            group = "any size" if sizes[1].startswith("0") else sizes[1]
            print("  grid of %s work-items, groups of %s" % (sizes[0], group))
        elif enum_word(t["action"], "ACT_") == "copy":
            print("  copies %s" % bytes_of(int(t["accesses"][0]["tensor"]["bytes"])))
        elif int(t["function"]):
            print("  runs %s" % str(t["function"]).split("<")[-1].rstrip(">"))
        elif int(t["commands"]["enqueue"]):
            print("  enqueued by %s" % str(t["commands"]["enqueue"]).split("<")[-1].rstrip(">"))

    @staticmethod
    def argument(t, a):
        kind = enum_word(a["kind"], "ARG_")
        if kind == "tensor":
            return "no tensor" if int(a["access"]) < 0 else text(t["accesses"][int(a["access"])]["tensor"]["name"])
        if kind == "float":
            return "%g" % float(a["real"])
        if kind == "local":
            return "%d B of local memory" % int(a["n_bytes"])
        return "%d" % int(a["number"])


def near_names(name, names):
    """Names that somebody who typed `name` may have meant: "; there are mlp.fc, mlp.fc.dx".  Numbers are no names."""
    names = [n for n in names if not n.isdigit()]
    near = sorted(n for n in names if name and name in n) or difflib.get_close_matches(name, names)
    return "; there are " + ", ".join(near[:8]) if near else ""


def find_slice(name, shape, indices):
    """The first element, how many they are, and the shape that is left: "1,0" of (4, 2, 32, 32) leaves (32, 32)."""
    begin, left, words = 0, shape[:], [w for w in indices.split(",") if w.strip()]
    try:
        for k, word in enumerate(words):
            size = left.pop(0)
            inner = 1
            for n in left:
                inner *= n
            first, colon, end = word.partition(":")
            first = int(first or 0)
            end = int(end or size) if colon else first + 1
            if not 0 <= first < end <= size or (colon and k + 1 < len(words)):
                raise ValueError
            begin += first * inner
            if colon:
                left.insert(0, end - first)
    except (ValueError, IndexError):
        raise gdb.GdbError("%s has the shape %s: [%s] is not a part of it; the last index may be a range, as 2:5" %
                           (name, tuple(shape), indices))
    n = 1
    for size in left:
        n *= size
    return begin, n, left


def npy(data, kind, shape):
    header = "{'descr': '<%s4', 'fortran_order': False, 'shape': %s, }" % (kind, tuple(shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + data


def picture_of(values, shape):
    """A grey picture with a pixel for each value: rows below each other."""
    columns = shape[-1] if shape else 1
    finite = [v for v in values if v == v and abs(v) != float("inf")] or [0]
    least, span = min(finite), (max(finite) - min(finite)) or 1
    grey = bytes(max(0, min(255, int(255 * (v - least) / span))) if v == v else 0 for v in values)
    return b"P5 %d %d 255\n" % (columns, len(values) // columns) + grey


class Tensor(Command):
    """yard tensor NAME [N] [FILE]: shape, place, life and values; of those of that name the one that task N touches.

NAME[1,0] is the slice that its first indices 1 and 0 name, and NAME[2:5] are the rows 2 to 4.  FILE.npy gets the values
for NumPy, and FILE.pgm gets them as a picture, from the least in black to the largest in white."""

    def run(self, words):
        list = find_list()
        path = words.pop() if words and words[-1].endswith((".npy", ".pgm")) else None
        task = task_at(list, words[1]) if len(words) == 2 else None
        if task is not None:
            words = words[:1]
        name = self.one(words, "a tensor's name, as `yard task` shows it, and a task")
        name, bracket, indices = name.partition("[")
        pool = list["pool"]
        found = [x.dereference() for x in items(pool["tensors"], pool["n"]) if text(x["name"]) == name]
        if not found:
            raise gdb.GdbError("there is no tensor %s%s" % (name, near_names(
                name, {text(x["name"]) for x in items(pool["tensors"], pool["n"])})))
        if task is not None:
            mine = [int(x.address) for x in tensors_of(task, READ | WRITE)]
            found = [x for x in found if int(x.address) in mine]
            if not found:
                raise gdb.GdbError("%s does not touch a tensor %s" % (name_task(task), name))
        if bracket or path:
            if len(found) > 1:
                raise gdb.GdbError("%d tensors are called %s: add the number of a task that touches the one you mean"
                                   % (len(found), name))
            self.show_slice(found[0], indices.rstrip("]") if bracket else "", path)
            return
        for x in found:
            self.show(list, x)

    def show_slice(self, x, indices, path):
        """Values of the part that the indices name, row by row, or a file of them."""
        address = address_of(x)
        if address is None:
            raise gdb.GdbError("%s has no values here" % text(x["name"]))
        shape = [int(size) for size in items(x["shape"]["size"], x["shape"]["n_dims"])]
        begin, n, left = find_slice(text(x["name"]), shape, indices)
        kind = "i" if "INT32" in str(x["type"]) else "f"
        data = gdb.selected_inferior().read_memory(address + 4 * begin, 4 * n).tobytes()
        values = struct.unpack("=%d%s" % (n, kind), data)
        print("%s[%s]: %s, min %.6g, max %.6g" % (text(x["name"]), indices, tuple(left), min(values), max(values)))
        if path is None:
            columns = left[-1] if left else 1
            for row in range(min(8, n // columns)):
                some = values[row * columns:row * columns + min(8, columns)]
                print("  %s%s" % (" ".join("%8.4g" % v for v in some), " ..." if columns > 8 else ""))
            return
        try:
            with open(path, "wb") as out:
                out.write(npy(data, kind, left) if path.endswith(".npy") else picture_of(values, left))
        except OSError as e:
            raise gdb.GdbError("%s cannot be written: %s" % (path, e.strerror))
        print("  wrote %s" % path)

    def show(self, list, x):
        base, address = storage_of(x), address_of(x)
        kept = " keeps its value from step to step" if base["persistent"] else ""
        print("%s, %s, %s%s" % (name_tensor(x), enum_word(base["class"], "MEM_"), bytes_of(int(x["bytes"])), kept))
        if int(x["storage"]) != int(x.address) and int(x["storage"]):
            print("  a view of %s, from byte %d on" % (text(base["name"]), int(x["offset"])))
        users = [t for t in items(list["tasks"], list["n"])
                 if any(int(a["tensor"]) == int(x.address) for a in items(t["accesses"], t["n_accesses"]))]
        for t in users:
            modes = [int(a["mode"]) for a in items(t["accesses"], t["n_accesses"])
                     if int(a["tensor"]) == int(x.address)]
            print("  %s %s" % (touched_by(modes[0]), name_task(t)))
        now = find_running()
        if now and not base["persistent"] and int(base["list"]):
            first, last = int(base["held_from"]), int(base["held_until"])
            print("  its bytes are its own from task %d to %d: %s" % (first, last, self.whose_now(first, last, now[2])))
        if address is None:
            print("  no values: %s" % self.why_no_values(base))
            return
        self.show_values(x, address)

    @staticmethod
    def whose_now(first, last, at):
        """Whose bytes are they, which are a tensor's own from its first to its last task, while task `at` is issued?"""
        if not is_serial():
            return "the host issues task %d" % at
        return "so they are now" if first <= at <= last else "now they may be another's"

    @staticmethod
    def why_no_values(base):
        if int(base["slab"]) < 0:
            return "it has no place yet"
        return "they are in the memory of %s" % text(base["device"]["name"])

    @staticmethod
    def show_values(x, address):
        n = int(x["bytes"]) // 4
        kind = "i" if "INT32" in str(x["type"]) else "f"
        try:
            data = gdb.selected_inferior().read_memory(address, 4 * n).tobytes()
        except gdb.MemoryError:
            print("  no values: 0x%x cannot be read" % address)
            return
        values = struct.unpack("=%d%s" % (n, kind), data)
        n_dims = int(x["shape"]["n_dims"])
        columns = int(x["shape"]["size"][n_dims - 1]) if n_dims else n
        print("  values at 0x%x" % address)
        for row in range(min(4, n // columns if columns else 0)):
            some = values[row * columns:row * columns + min(6, columns)]
            print("    %s%s" % (" ".join("%11.5g" % v for v in some), " ..." if columns > 6 else ""))
        if columns and n // columns > 4:
            print("    ...")
        numbers = [v for v in values if v == v and abs(v) != float("inf")]
        if numbers:
            print("  min %.6g, max %.6g, mean %.6g" % (min(numbers), max(numbers), sum(numbers) / len(numbers)))
        if len(numbers) < n:
            first = next(i for i, v in enumerate(values) if not (v == v and abs(v) != float("inf")))
            print("  %d of %d are not finite, the first is element %d" % (n - len(numbers), n, first))


class Waits(Command):
    """yard waits N: why task N has not started."""

    def run(self, words):
        list = find_list()
        t = task_at(list, self.one(words, "a task: its number, or its name"))
        now, lane = find_running(), int(t["lane"]["index"])
        if not now and int(list["running"]) == 0:
            print("%s: this list is not run now" % name_task(t))
            return
        if now and is_serial():
            print("%s: %s" % (name_task(t), self.when_in_turn(int(t["index"]), now[2])))
            return
        runs = lane_instances(list, lane)
        mine = [(k, n) for k, (u, n) in enumerate(runs) if int(u["index"]) == int(t["index"])]
        if not mine:
            print("%s: %s" % (name_task(t), self.why_not_started(list, t, now)))
            return
        ahead, number = mine[0]
        print("%s of step %d" % (name_task(t), number))
        if ahead:
            print("  comes after %s of step %d on its lane, and %d more" %
                  (name_task(runs[0][0]).rsplit(" on ", 1)[0], runs[0][1], ahead - 1))
        held = open_producers(list, t, number)
        for e, before, run in held:
            print("  waits for %s of step %d, %s" % (name_task(before), run, reason(list, t, e)))
        if not held and not ahead:
            print("  waits for nothing: it runs, or has ended and has not been looked at")

    @staticmethod
    def when_in_turn(i, at):
        """When task i of a serial run, which is at task `at`, runs."""
        if i == at:
            return "it runs now"
        if i < at:
            return "it has run in this step"
        return "this run is serial, and at task %d: %d come before" % (at, i - at)

    @staticmethod
    def why_not_started(list, t, now):
        """Of a task that has no instance in flight."""
        if now and now[2] <= int(t["index"]):
            return "it has not been issued, the host is at task %d of step %d" % (now[2], now[1])
        if int(list["running"]):
            return "all its instances so far have ended"
        return "list %s is not being run" % text(list["name"])


class TaskBreakpoint(gdb.Breakpoint):
    """Before a task runs (serial), or is issued to its lane (threads)."""

    def __init__(self, place, wanted=None, given=None, temporary=False, is_checked=True):
        super().__init__(place, internal=wanted is None, temporary=temporary)
        self.wanted, self.given = wanted, given or {}
        self.is_checked = is_checked  # False: no list was there yet to look for the task in
        self.silent, self.where = True, None

    def stop(self):
        found = find_running()
        if not found:
            return False
        if not self.is_checked:
            self.is_checked = True
            never = why_never(self.wanted, self.given, known_tasks())
            if never:
                print(never)
                return True
        list, number, i = found
        t = list["tasks"][i].dereference()
        if self.wanted is not None and self.wanted not in (text(t["name"]), str(i)):
            return False
        have = {"step": number, "layer": int(t["layer"]), "micro": int(t["micro"])}
        if any(have[word] != value for word, value in self.given.items()):
            return False
        self.where = "step %d, %s" % (number, name_task(t))
        if self.wanted is not None:
            print(self.where)
        return True


def stops(**wanted):
    return [TaskBreakpoint(place, **wanted) for place in ("run_alone", "issue_task")]


# ---- can a breakpoint be hit? ----

class Known:
    """What `yard break` asks of a task: all tasks of the lists that are in sight are kept as this."""

    def __init__(self, t, list):
        self.name, self.index, self.list = text(t["name"]), int(t["index"]), text(list["name"])
        self.place = {"layer": int(t["layer"]), "micro": int(t["micro"])}


def find_trainer():
    return next((value for _, value in pointers_to(("trainer",))), None)


def lists_in_sight():
    """Those of the trainer, and others that frames work on; before the program has built one, none."""
    trainer, found = find_trainer(), {}
    pointers = [trainer[name] for name in ("train_list", "eval_list", "sample_list")] if trainer is not None else []
    for list in [p.dereference() for p in pointers if is_list(p)]:
        found[int(list.address)] = list
    try:
        list = find_list()
        found[int(list.address)] = list
    except (gdb.error, gdb.GdbError):
        pass
    return found.values()


def known_tasks():
    return [Known(t, list) for list in lists_in_sight() for t in items(list["tasks"], list["n"])]


def numbers_in_words(numbers):
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return "%d to %d" % (numbers[0], numbers[-1])
    return " and ".join(", ".join(map(str, numbers)).rsplit(", ", 1))


def why_never(wanted, given, known):
    """What to say if no task can be stopped at so; None: one can, or no list is known yet."""
    tasks = [t for t in known if wanted in (t.name, str(t.index))]
    if not known:
        return None
    if not tasks:
        names = {t.name for t in known} | {str(t.index) for t in known}
        return "there is no task %s%s" % (wanted, near_names(wanted, names))
    which = "task %s" % wanted
    for word, what in (("layer", "layer"), ("micro", "micro-batch")):
        if word not in given:
            continue
        have = sorted({t.place[word] for t in tasks if t.place[word] >= 0})
        tasks = [t for t in tasks if t.place[word] == given[word]]
        if not tasks and not have:
            return "%s has no %s: leave %s= out" % (which, what, word)
        if not tasks:
            return "%s has no %s %d, only %s" % (which, what, given[word], numbers_in_words(have))
        which += " of %s %d" % (what, given[word])
    return why_no_step(which, given.get("step"), tasks)


def why_no_step(which, step, tasks):
    """The same for the step.  Other lists than that of the training count their own rounds, which have no end."""
    trainer = find_trainer()
    if step is None:
        return None
    if step < 1:
        return "there is no step %d: they count from 1" % step
    if trainer is None or any(t.list != "train" for t in tasks):
        return None
    settings = trainer["settings"]
    last = int(settings["stop_after"]) or int(settings["steps"])
    if step > last:
        return "there is no step %d: the run ends with step %d" % (step, last)
    now = find_running()
    if now is None or text(now[0]["name"]) != "train" or (step, max(t.index for t in tasks)) >= now[1:]:
        return None
    return "%s of step %d comes no more: the run is at task %d of step %d" % (which, step, now[2], now[1])


class Break(Command):
    """yard break TASK [step=K] [layer=L] [micro=M]: stop before it runs.  TASK is a name, or a number of the list."""

    def run(self, words):
        given = dict(w.split("=", 1) for w in words[1:] if "=" in w)
        if not words or len(given) < len(words) - 1 or set(given) - {"step", "layer", "micro"}:
            raise gdb.GdbError("yard break takes a task's name or number, then step=K, layer=L, micro=M")
        try:
            given = {word: int(value) for word, value in given.items()}
        except ValueError:
            raise gdb.GdbError("yard break: step=, layer= and micro= take whole numbers")
        known = known_tasks() if gdb.selected_thread() else []
        never = why_never(words[0], given, known)
        if never:
            raise gdb.GdbError(never)
        stops(wanted=words[0], given=given, is_checked=bool(known))


class NextTask(Command):
    """Go on to the next task: before it runs (serial), or is issued."""

    def run(self, words):
        self.none(words)
        process()
        points = stops()
        try:
            gdb.execute("continue", to_string=True)
            none = "no task comes any more"
            if gdb.selected_thread():
                none = "stopped in %s, before a task" % gdb.newest_frame().name()
            print(next((p.where for p in points if p.is_valid() and p.where), none))
        finally:
            for p in points:
                if p.is_valid():
                    p.delete()


class Diff(Command):
    """yard diff [LIST]: what has changed in a list since this command, or step-list, looked at it last."""

    def run(self, words):
        list = find_list(self.one(words, "one list's name, or nothing") if words else None)
        name = text(list["name"])
        now = picture(list)
        if name in FOUND:
            show_difference(name, FOUND[name], now)
        else:
            print("list %s has %d tasks; the next `yard diff` shows what has changed" % (name, len(now)))
        FOUND[name] = now


VERBS = ["sink_task", "hoist_task", "set_home", "make_transient", "make_persistent", "set_exclusive", "mirror_tensor",
         "repoint_task", "cut_task", "repeat_task", "stand_in", "replace_on_host", "drop_task", "add_copy_for",
         "add_move", "add_download", "add_kernel", "add_copy", "add_host", "add_own_commands", "switch_readers",
         "commit_edit", "undo_edit"]


class VerbBreakpoint(gdb.Breakpoint):
    """An edit, as the outermost of those that are called within one another."""

    def __init__(self, verb):
        super().__init__(verb, internal=True)
        self.verb, self.silent = verb, True

    def stop(self):
        frame = gdb.newest_frame().older()
        while frame is not None and frame.name() != "run_passes":
            if frame.name() in VERBS:
                return False
            frame = frame.older()
        return frame is not None


class StepList(Command):
    """yard step-list PASS [TRACE]: go on to the next edit of that pass, and show what it changed in the list.

With TRACE, the list as it is then is simulated into that file.  An open `yard view TRACE` shows each new one."""

    def run(self, words):
        self.trace = self.safe(words.pop()) if len(words) > 1 else None
        name = self.one(words, "a pass: recompute, overlap, ... as in `yard plan --after`")
        entry = "run_" + name.replace("-", "_")
        if not self.is_pass(gdb.lookup_global_symbol(entry) or gdb.lookup_static_symbol(entry)):
            raise gdb.GdbError("there is no pass %s" % name)
        if not any(f.name() == entry for f in self.mine()):
            self.begin(name, entry)
            return
        points = [VerbBreakpoint(v) for v in VERBS]
        leave = gdb.FinishBreakpoint(next(f for f in self.mine() if f.name() == entry), internal=True)
        leave.silent = True
        try:
            gdb.execute("continue", to_string=True)
            verb = gdb.newest_frame().name() if gdb.selected_thread() else None
            if verb is None:
                raise gdb.GdbError("the program has ended within pass %s" % name)
            if not any(f.name() == entry for f in self.mine()):
                self.show(find_list())
                print("pass %s has ended" % name)
                return
            if not any(p.hit_count for p in points) or verb not in VERBS:
                raise gdb.GdbError("stopped in %s, before an edit: the same command goes on" % verb)
            list = self.edited()
            where = gdb.newest_frame().older().find_sal()
            for p in points:
                p.enabled = False
            done = gdb.FinishBreakpoint(gdb.newest_frame(), internal=True)
            done.silent = True
            gdb.execute("continue", to_string=True)
        finally:
            for p in points + [leave]:
                if p.is_valid():
                    p.delete()
        print("%s, called at %s:%d" % (verb, os.path.relpath(where.symtab.fullname()), where.line))
        self.show(list)
        now = picture(list)
        show_difference(text(list["name"]), FOUND.get(text(list["name"]), now), now)
        FOUND[text(list["name"])] = now

    def begin(self, name, entry):
        start = gdb.Breakpoint(entry, internal=True)
        start.silent = True
        try:
            gdb.execute("run" if gdb.selected_thread() is None else "continue", to_string=True)
        finally:
            start.delete()
        if not gdb.selected_thread():
            raise gdb.GdbError("pass %s was not run" % name)
        if not any(f.name() == entry for f in self.mine()):
            raise gdb.GdbError("stopped in %s, before pass %s: the same command goes on" %
                               (gdb.newest_frame().name(), name))
        list = find_list()
        self.show(list)
        FOUND[text(list["name"])] = picture(list)
        print("pass %s begins, list %s has %d tasks" % (name, text(list["name"]), int(list["n"])))

    @staticmethod
    def is_pass(symbol):
        """It reports as a pass does: other functions are named run_... too."""
        fields = symbol.type.fields() if symbol and symbol.type.code == gdb.TYPE_CODE_FUNC else []
        return any(str(f.type) == "struct pass_report *" for f in fields)

    @staticmethod
    def safe(path):
        """A place for a trace.  The program would end where it cannot write, and would replace any file."""
        path = os.path.abspath(os.path.expanduser(path))
        folder = os.path.dirname(path)
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise gdb.GdbError("no trace can be written into %s: name a folder that is there" % folder)
        if os.path.lexists(path):
            if not os.path.isfile(path) or open(path, "rb").read(8) not in (b"", b"YARDTRC1"):
                raise gdb.GdbError("only a trace is replaced, and %s is none: choose another name" % path)
        return path

    def show(self, list):
        if not self.trace:
            return
        passes = next(f for f in self.mine() if f.name() == "run_passes")
        costs = next((v for _, v in variables(passes) if pointed(v) == "costs"), 0)
        before = os.path.exists(self.trace) and os.stat(self.trace)
        path = self.trace.replace("\\", "\\\\").replace('"', '\\"')
        gdb.parse_and_eval('show_list((struct list *)%d, (struct costs *)%d, "%s")'
                           % (int(list.address), int(costs), path))
        if not os.path.exists(self.trace) or (before and os.path.samestat(before, os.stat(self.trace))):
            print("  no trace is written: the list has no times, or cannot run as it is now")

    @staticmethod
    def edited():
        for name, value in variables(gdb.newest_frame()):
            tag = pointed(value)
            if tag in ("edit", "list"):
                return LIST_OF[tag](value).dereference()
        return find_list()

    @staticmethod
    def mine():
        frame = gdb.newest_frame() if gdb.selected_thread() else None
        while frame is not None:
            yield frame
            frame = frame.older()


# ---- pretty-printers -------------------------------------------------------------------------------------------------

class Words:
    def __init__(self, value, words):
        self.value, self.words = value, words

    def to_string(self):
        return self.words(self.value)


def edge_words(e):
    kind = "bytes of " if "REUSE" in str(e["kind"]) else ""
    return "%stask %d%s%s" % (kind, int(e["producer"]), " of the step before" if e["previous"] else "",
                              "" if e["needs_wait"] else ", implied")


PRINTED = {
    "tensor": lambda x: "tensor " + name_tensor(x),
    "task": lambda t: name_task(t),
    "edge": edge_words,
    "access": lambda a: "%s %s" % (enum_word(a["mode"], "ACCESS_"), text(a["tensor"]["name"])),
    "lane": lambda l: "lane " + text(l["name"]),
    "device": lambda d: "device %s, %s" % (text(d["id"]), text(d["name"])),
    "list": lambda list: "list %s of %d tasks" % (text(list["name"]), int(list["n"])),
}


def find_printer(value):
    kind = value.type.strip_typedefs().unqualified()
    if kind.code == gdb.TYPE_CODE_STRUCT and kind.tag in PRINTED:
        return Words(value, PRINTED[kind.tag])
    return None


find_printer.__name__ = "yard"
gdb.pretty_printers[:] = [p for p in gdb.pretty_printers if getattr(p, "__name__", "") != "yard"] + [find_printer]
Yard()
for command, name in ((Lanes, "lanes"), (Task, "task"), (Tensor, "tensor"), (Waits, "waits"), (Break, "break"),
                      (NextTask, "next-task"), (Diff, "diff"), (StepList, "step-list")):
    command(name)
