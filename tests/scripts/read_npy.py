"""read_npy.py - reads what `yard train --dump` wrote, by NumPy if it is installed, and compares it with what is known.

    read_npy.py FILE.npy SHAPE              prints how many values there are, the least and the largest
    read_npy.py FILE.npy SHAPE shares       the same of attention's shares: a row adds up to 1, and none is of a later
                                            position
    read_npy.py FILE.npy SHAPE N T TEXT     the same of a batch: N tokens in rows of T, then N targets; each row is
                                            found in the file TEXT, a byte a token, and each target is the next byte
    read_npy.py FILE.npy SHAPE saved FILE   the same of a parameter: FILE, a checkpoint, has the bytes of its values

SHAPE is what the file must have, such as 4x2x32x32.  A .npy file, byte by byte:

    0    \\x93NUMPY, and the version 1.0 in two bytes
    8    the length of the header, in two bytes
    10   the header, {'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }: values begin at a multiple of 64
"""
import ast
import struct
import sys


def read(path):
    try:
        import numpy

        a = numpy.load(path)
        return a.shape, a.ravel().tolist()
    except ImportError:
        pass
    data = open(path, "rb").read()
    n = struct.unpack("<H", data[8:10])[0]
    assert data[:8] == b"\x93NUMPY\1\0" and (10 + n) % 64 == 0
    header = ast.literal_eval(data[10 : 10 + n].decode())
    assert not header["fortran_order"]
    kind = {"<f4": "f", "<i4": "i"}[header["descr"]]
    return header["shape"], struct.unpack("<%d%s" % ((len(data) - 10 - n) // 4, kind), data[10 + n :])


def expect_shares(values, T):
    for first in range(0, len(values), T):
        row = values[first : first + T]
        position = first // T % T
        assert abs(sum(row) - 1) < 1e-5, "row %d adds up to %r" % (first // T, sum(row))
        assert not any(row[position + 1 :]), "row %d has shares of later positions" % (first // T)
        assert all(row[: position + 1]), "row %d has no share of an earlier position" % (first // T)


def expect_batch(values, n, T, text):
    for first in range(0, n, T):
        tokens = bytes(values[first : first + T])
        targets = bytes(values[n + first : n + first + T])
        assert tokens[1:] == targets[:-1], "row %d: targets are not the next tokens" % (first // T)
        assert tokens + targets[-1:] in text, "row %d is not in the text: %r" % (first // T, tokens)


def expect_saved(values, checkpoint):
    part = struct.pack("<%df" % len(values), *values)
    assert part in checkpoint, "the checkpoint has not these %d values" % len(values)


shape, values = read(sys.argv[1])
assert "x".join(map(str, shape)) == sys.argv[2], shape
if sys.argv[3:] == ["shares"]:
    expect_shares(values, shape[-1])
elif sys.argv[3:4] == ["saved"]:
    expect_saved(values, open(sys.argv[4], "rb").read())
elif sys.argv[3:]:
    expect_batch(values, int(sys.argv[3]), int(sys.argv[4]), open(sys.argv[5], "rb").read())
print(len(values), min(values), max(values))
