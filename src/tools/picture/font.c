/* font.c - text from a picture of its letters.
 *
 * letters.png holds each letter in four sizes: how much of each pixel it covers.  letters.py made it, of DejaVu Sans
 * Condensed, and describes it; letters.txt is the font's licence.  The picture travels inside the program, so all
 * machines draw the same pixels.
 */
#include "canvas.h"

#include <ctype.h>
#include <zlib.h>

extern const unsigned char embedded_letters[]; /* the bytes of letters.png; see the Makefile */
extern const size_t embedded_letters_size;

/* ---- the picture ------------------------------------------------------------------------------------------------- */

enum { FONTS = 4, ACROSS = 32, LETTERS = 503, LEFT = 3, PNG_HEAD = 33 };
static const int sizes[FONTS] = {[SMALL_1X] = 11, [NORMAL_1X] = 13, [SMALL_2X] = 22, [NORMAL_2X] = 26};
static const struct characters {
    uint32_t first, last;
} ranges[] = {{0x20, 0x7E},     {0xA0, 0x17F},    {0x384, 0x3CE},   {0x2010, 0x2027}, {0x2190, 0x2195},
              {0x2200, 0x2212}, {0x221A, 0x221E}, {0x2260, 0x2265}, {0x25A0, 0x25CF}, {0xFFFD, 0xFFFD}};

struct letter {
    const unsigned char *cover; /* the pixel of the letter's box at its top left; 255: it is covered wholly */
    int left, top;              /* where the box begins, from the origin, which is on the baseline */
    int width, height;          /* 0: there is nothing to draw */
    int advance;                /* to the origin of the next letter */
};
static struct letter letters[FONTS][LETTERS];
static size_t stride; /* bytes from one row of the picture to the next */

static uint32_t number_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* The rows of the picture, a byte in front of each.  It has one chunk of pixels, behind its head. */
static unsigned char *unpack_letters(void)
{
    const unsigned char *head = embedded_letters + 16, *pixels = embedded_letters + PNG_HEAD;
    stride = number_at(head) + 1;
    uLongf size = stride * number_at(head + 4);
    unsigned char *rows = allocate(size, 1);
    int code = uncompress(rows, &size, pixels + 8, number_at(pixels));
    CHECK(code == Z_OK && embedded_letters_size > PNG_HEAD + number_at(pixels), "letters.png: %d", code);
    return rows;
}

/* Does a row of the cell cover any pixel?  `along` is 1 for a row; where it is the stride, this looks at a column. */
static bool has_pixel(const unsigned char *cell, size_t along, int n)
{
    bool any = false;
    for (int i = 0; i < n; i++)
        any |= cell[(size_t)i * along] != 0;
    return any;
}

/* Finds the letter's box in its cell: what is covered, and nothing around it. */
static struct letter find_letter(unsigned char *cell, int width, int height, int base)
{
    struct letter letter = {.advance = cell[0], .width = width, .height = height};
    int x = 0, y = 0;
    cell[0] = 0;
    while (letter.height > 0 && !has_pixel(cell + (size_t)(y + letter.height - 1) * stride, 1, width))
        letter.height--;
    while (letter.height > 0 && !has_pixel(cell + (size_t)y * stride, 1, width)) {
        y++;
        letter.height--;
    }
    while (letter.height > 0 && !has_pixel(cell + x, stride, height)) {
        x++;
        letter.width--;
    }
    while (letter.height > 0 && !has_pixel(cell + x + letter.width - 1, stride, height))
        letter.width--;
    letter.cover = cell + (size_t)y * stride + x;
    letter.left = x - LEFT;
    letter.top = y - base;
    return letter;
}

static void load_letters(void)
{
    unsigned char *band = unpack_letters() + 1;
    for (int font = 0; font < FONTS; font++) {
        int size = sizes[font], width = size + 5;
        int height = size + size / 2, base = size + size / 8;
        for (int i = 0; i < LETTERS; i++) {
            unsigned char *cell = band + (size_t)(i / ACROSS * height) * stride + i % ACROSS * width;
            letters[font][i] = find_letter(cell, width, height, base);
        }
        band += (size_t)(ceil_div(LETTERS, ACROSS) * (size_t)height) * stride;
    }
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static const struct letter *picture_of(enum font font, uint32_t character)
{
    uint32_t before = 0;
    if (!stride)
        load_letters();
    for (size_t i = 0; i < COUNT(ranges); i++) {
        if (character >= ranges[i].first && character <= ranges[i].last)
            return &letters[font][before + character - ranges[i].first];
        before += ranges[i].last - ranges[i].first + 1;
    }
    return &letters[font][LETTERS - 1]; /* U+FFFD */
}

/* The letter of the character at *at, which is moved behind it; what is not UTF-8 is U+FFFD. */
static const struct letter *next_letter(enum font font, const char *text, size_t *at)
{
    uint32_t character = 0;
    size_t n = utf8_decode(text + *at, UTF8_BYTES, &character);
    *at += MAX(n, 1);
    return picture_of(font, n > 0 ? character : 0xFFFD);
}

/* Its origin is at (x, y). */
static void draw_letter(struct canvas *canvas, int x, int y, const struct letter *letter, uint32_t colour)
{
    int left = x + letter->left, top = y + letter->top;
    int first = MAX(0, -left), end = MIN(letter->width, canvas->width - left);
    for (int row = MAX(0, -top); row < MIN(letter->height, canvas->height - top); row++) {
        uint32_t *pixel = canvas->pixels + (int64_t)(top + row) * canvas->width + left;
        const unsigned char *cover = letter->cover + (size_t)row * stride;
        for (int i = first; i < end; i++)
            if (cover[i])
                pixel[i] = mix_colours(pixel[i], colour, cover[i] + 1u);
    }
}

enum { LEAST_LETTERS = 2 }; /* fewer before an ellipsis say nothing */
static const int baseline[FONTS] = {12, 12, 24, 24};

int text_width(enum font font, const char *text)
{
    int width = 0;
    for (size_t at = 0; text[at];)
        width += next_letter(font, text, &at)->advance;
    return width;
}

void draw_text(struct canvas *canvas, int x, int y, enum font font, const char *text, uint32_t colour)
{
    for (size_t at = 0; text[at];) {
        const struct letter *letter = next_letter(font, text, &at);
        draw_letter(canvas, x, y + baseline[font], letter, colour);
        x += letter->advance;
    }
}

/* How many letters and digits there are in as much of the text as `room` pixels hold. */
static int count_letters(enum font font, const char *text, int room)
{
    int n = 0, width = 0;
    for (size_t at = 0; text[at];) {
        unsigned char first = (unsigned char)text[at];
        width += next_letter(font, text, &at)->advance;
        if (width > room)
            break;
        n += isalnum(first) || (first >= 0xC2 && first < 0xE0); /* two bytes: Latin or Greek */
    }
    return n;
}

void draw_text_within(struct canvas *canvas, const struct text_place *place, enum font font, const char *text,
                      uint32_t colour)
{
    static const char dots[] = "\u2026";
    int x = place->x, y = place->y;
    bool whole = x + text_width(font, text) <= place->right;
    int end = whole ? place->right : place->right - text_width(font, dots);
    if (!whole && count_letters(font, text, end - x) < LEAST_LETTERS)
        return;
    for (size_t at = 0; text[at];) {
        const struct letter *letter = next_letter(font, text, &at);
        if (x + letter->advance > end)
            break;
        draw_letter(canvas, x, y + baseline[font], letter, colour);
        x += letter->advance;
    }
    if (!whole && x <= end)
        draw_text(canvas, x, y, font, dots, colour);
}
