"""read_npy.py - reads what `yard train --dump` wrote, by NumPy if it is installed.

    read_npy.py FILE.npy SHAPE     prints how many values there are, the least and the largest

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


shape, values = read(sys.argv[1])
assert "x".join(map(str, shape)) == sys.argv[2], shape
print(len(values), min(values), max(values))
