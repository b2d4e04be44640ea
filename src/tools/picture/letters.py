#!/usr/bin/env python3
"""letters.py - makes letters.png, the picture of all letters that font.c draws text with.

    python3 src/tools/picture/letters.py DejaVuSansCondensed.ttf src/tools/picture/letters.png

It needs freetype-py (Debian: python3-freetype) and the font (Debian: fonts-dejavu-extra).  letters.txt has the font's
licence.  A build needs none of that: the picture is committed, so that all machines draw the same pixels.

The picture is grey, 8 bits a pixel, rows unfiltered: how much of the pixel the letter covers.  It has one band for each
of SIZES, from the top.  A band is rows of ACROSS cells of equal size, one for each character of RANGES in turn.  In a
cell the letter's origin is LEFT of its width from the left, on the baseline, which is BASE of its height from the top.
The cell's first pixel is no coverage: it is how far the next letter is from this one.
font.c has the same numbers.
"""
import struct
import sys
import zlib

import freetype

SIZES = [11, 13, 22, 26]  # pixels from one line to the next, as fonts count them; 22 and 26 are for screens of 2x
ACROSS = 32
RANGES = [(0x20, 0x7E), (0xA0, 0x17F), (0x384, 0x3CE), (0x2010, 0x2027), (0x2190, 0x2195), (0x2200, 0x2212),
          (0x221A, 0x221E), (0x2260, 0x2265), (0x25A0, 0x25CF), (0xFFFD, 0xFFFD)]


def cell_of(size):
    """Width, height, where the origin is."""
    return size + 5, size + size // 2, 3, size + size // 8


def draw_letter(face, size, character, rows, left, top):
    width, height, origin, base = cell_of(size)
    face.load_char(chr(character), freetype.FT_LOAD_RENDER | freetype.FT_LOAD_TARGET_LIGHT)
    glyph = face.glyph
    bitmap = glyph.bitmap
    for y in range(bitmap.rows):
        for x in range(bitmap.width):
            at_x = origin + glyph.bitmap_left + x
            at_y = base - glyph.bitmap_top + y
            covered = bitmap.buffer[y * bitmap.pitch + x]
            if covered and (not 0 <= at_x < width or not 0 <= at_y < height or at_x + at_y == 0):
                sys.exit(f"U+{character:04X} does not fit into its cell at {size} pixels")
            if covered:
                rows[top + at_y][left + at_x] = covered
    rows[top][left] = (glyph.advance.x + 32) >> 6


def draw_band(face, size):
    characters = [c for first, last in RANGES for c in range(first, last + 1)]
    width, height, _, _ = cell_of(size)
    lines = (len(characters) + ACROSS - 1) // ACROSS
    rows = [bytearray(ACROSS * cell_of(SIZES[-1])[0]) for _ in range(lines * height)]
    face.set_pixel_sizes(0, size)
    for i, character in enumerate(characters):
        draw_letter(face, size, character, rows, i % ACROSS * width, i // ACROSS * height)
    return rows


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def main():
    face = freetype.Face(sys.argv[1])
    rows = [row for size in SIZES for row in draw_band(face, size)]
    with open(sys.argv[2], "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n")
        out.write(chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)))
        out.write(chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows), 9)))
        out.write(chunk(b"IEND", b""))


main()
