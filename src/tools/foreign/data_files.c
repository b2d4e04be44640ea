/* data_files.c - recognises files of other programs where text or token numbers are expected: by their first bytes, and
 * some by their last bytes too.
 */
#include "foreign.h"

/* ---- what a file with a short signature must show beside it ------------------------------------------------------ */

/* Text and token numbers may begin with the same few bytes. */

/* The 32 bits at byte `at`; 0: the glimpse does not have them. */
static uint32_t glimpse_u32(const struct glimpse *glimpse, size_t at)
{
    uint32_t word = 0;
    if (glimpse->n >= at + sizeof word)
        memcpy(&word, glimpse->bytes + at, sizeof word);
    return word;
}

static bool is_one_of(char byte, const char *allowed, size_t n) { return memchr(allowed, (unsigned char)byte, n); }

/* The signature is followed by the address of the first directory, which is even and in the file. */
static bool is_tiff_header(const struct glimpse *glimpse)
{
    uint32_t at = glimpse_u32(glimpse, 4);
    if (glimpse->bytes[0] == 'M')
        at = __builtin_bswap32(at);
    return at >= 8 && at % 2 == 0 && at < glimpse->size;
}

static bool is_bzip2(const struct glimpse *glimpse)
{
    static const char block[] = "\x31\x41\x59\x26\x53\x59";
    static const char end[] = "\x17\x72\x45\x38\x50\x90";
    return glimpse_has(glimpse, 4, block, sizeof block - 1) || glimpse_has(glimpse, 4, end, sizeof end - 1);
}

/* The signature is followed by a marker that may come first. */
static bool is_jpeg(const struct glimpse *glimpse)
{
    static const char markers[] = "\xdb\xc0\xc4\xfe\xe0\xe1\xe2\xe8\xed\xee";
    return glimpse->n > 3 && is_one_of(glimpse->bytes[3], markers, sizeof markers - 1);
}

static bool is_parquet(const struct glimpse *glimpse)
{
    return memcmp(glimpse->last + GLIMPSE_LAST - 4, "PAR1", 4) == 0;
}

/* The file's last byte is the length of what comes before it. */
static bool is_orc(const struct glimpse *glimpse)
{
    return memcmp(glimpse->last + GLIMPSE_LAST - 4, "ORC", 3) == 0 &&
           (unsigned char)glimpse->last[GLIMPSE_LAST - 1] >= 16;
}

/* The signature is followed by a version. */
static bool is_gguf(const struct glimpse *glimpse) { return glimpse_u32(glimpse, 4) < 1000; }

/* The signature is followed by a version or by the vocabulary's size. */
static bool is_ggml(const struct glimpse *glimpse) { return glimpse_u32(glimpse, 4) < 1 << 24; }

/* The signature is followed by a version. */
static bool is_mp3(const struct glimpse *glimpse)
{
    return glimpse->n > 4 && is_one_of(glimpse->bytes[3], "\2\3\4", 3) && glimpse->bytes[4] == 0;
}

/* The signature is followed by the length of a message, which begins with an offset. */
static bool is_arrow_stream(const struct glimpse *glimpse)
{
    uint32_t length = glimpse_u32(glimpse, 4);
    uint32_t offset = glimpse_u32(glimpse, 8);
    return length % 8 == 0 && length > 0 && length < glimpse->size && offset < 256;
}

static bool is_riff(const struct glimpse *glimpse)
{
    return glimpse_has(glimpse, 0, "RIFF", 4) && glimpse_u32(glimpse, 4) <= glimpse->size;
}

static bool is_mp4(const struct glimpse *glimpse) { return glimpse_has(glimpse, 0, "\0\0", 2); }

/* ---- formats with a signature ------------------------------------------------------------------------------------ */

static const char unpack[] = "take the text out of it, and name that";
static const char as_text[] = "write its texts into a plain text file first";
static const char no_text[] = "it holds no text; name another file";
static const char tokens_from_python[] =
    "write its token numbers with .astype('uint16').tofile('tokens.bin') from Python";
static const char is_model[] = "a model is what --init takes; name the text or the tokens to train on";

#define SHORT_SIGNATURE(at, text, shows_more) (at), (text), sizeof(text) - 1, (shows_more)
#define SIGNATURE(at, text) SHORT_SIGNATURE(at, text, NULL)
static const struct {
    size_t at;
    const char *text;
    size_t n;
    bool (*shows_more)(const struct glimpse *glimpse); /* NULL: the signature is enough */
    struct file_kind kind;
} signatures[] = {
    {SHORT_SIGNATURE(0, "BZh", is_bzip2), {KIND_OTHER, "a bzip2 file", "unpack it with bunzip2 first"}},
    {SIGNATURE(0, "\xfd"
                  "7zXZ\0"),
     {KIND_OTHER, "an xz file", "unpack it with unxz first"}},
    {SIGNATURE(0, "\x28\xb5\x2f\xfd"), {KIND_OTHER, "a zstd file", "unpack it with unzstd first"}},
    {SIGNATURE(0, "\x04\x22\x4d\x18"), {KIND_OTHER, "an lz4 file", "unpack it with unlz4 first"}},
    {SIGNATURE(0, "LZIP\1"), {KIND_OTHER, "an lzip file", "unpack it with lzip -d first"}},
    {SIGNATURE(0, "\xff\x06\0\0sNaPpY"), {KIND_OTHER, "a snappy file", unpack}},
    {SIGNATURE(0, "7z\xbc\xaf\x27\x1c"), {KIND_OTHER, "a 7z archive", unpack}},
    {SIGNATURE(0, "Rar!\x1a\x07"), {KIND_OTHER, "a RAR archive", unpack}},
    {SIGNATURE(0, "!<arch>\n"), {KIND_OTHER, "an ar archive", no_text}},
    {SIGNATURE(0, "PK\5\6"), {KIND_OTHER, "a zip archive", unpack}},
    {SIGNATURE(0, "\x93NUMPY"), {KIND_OTHER, "a NumPy array (.npy)", tokens_from_python}},
    {SIGNATURE(0, "\x89HDF\r\n\x1a\n"), {KIND_OTHER, "an HDF5 file", as_text}},
    {SHORT_SIGNATURE(0, "PAR1", is_parquet), {KIND_OTHER, "a Parquet file", as_text}},
    {SIGNATURE(0, "ARROW1\0\0"), {KIND_OTHER, "an Arrow file", as_text}},
    {SHORT_SIGNATURE(0, "\xff\xff\xff\xff", is_arrow_stream), {KIND_OTHER, "an Arrow stream", as_text}},
    {SHORT_SIGNATURE(0, "ORC", is_orc), {KIND_OTHER, "an ORC file", as_text}},
    {SIGNATURE(0, "Obj\1"), {KIND_OTHER, "an Avro file", as_text}},
    {SIGNATURE(0, "SQLite format 3\0"), {KIND_OTHER, "an SQLite database", as_text}},
    {SIGNATURE(16, "\xde\xc0\xef\xbe"), {KIND_OTHER, "an LMDB database", as_text}},
    {SIGNATURE(0, "MATLAB 5.0 MAT-file"), {KIND_OTHER, "a MATLAB file", as_text}},
    {SIGNATURE(0, "RDX2\n"), {KIND_OTHER, "an R file", as_text}},
    {SIGNATURE(0, "RDX3\n"), {KIND_OTHER, "an R file", as_text}},
    {SIGNATURE(0, "MMIDIDX\0\0"), {KIND_OTHER, "the index of Megatron's tokens", "name the .bin file beside it"}},
    {SHORT_SIGNATURE(0, "GGUF", is_gguf), {KIND_OTHER, "a GGUF model", is_model}},
    {SHORT_SIGNATURE(0, "lmgg", is_ggml), {KIND_OTHER, "a GGML model", is_model}},
    {SHORT_SIGNATURE(0, "fmgg", is_ggml), {KIND_OTHER, "a GGML model", is_model}},
    {SHORT_SIGNATURE(0, "tjgg", is_ggml), {KIND_OTHER, "a GGML model", is_model}},
    {SIGNATURE(0, "%PDF-"), {KIND_OTHER, "a PDF document", "convert it to text first, with pdftotext"}},
    {SIGNATURE(0, "%!PS-Adobe"), {KIND_OTHER, "a PostScript document", "convert it to text first"}},
    {SIGNATURE(0, "{\\rtf1"), {KIND_OTHER, "a document in rich text (RTF)", "save it as plain text first"}},
    {SIGNATURE(0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
     {KIND_OTHER, "a document of an office program", "save it as plain text first"}},
    {SHORT_SIGNATURE(0, "\xff\xd8\xff", is_jpeg), {KIND_OTHER, "a JPEG picture", no_text}},
    {SIGNATURE(0, "GIF87a"), {KIND_OTHER, "a GIF picture", no_text}},
    {SIGNATURE(0, "GIF89a"), {KIND_OTHER, "a GIF picture", no_text}},
    {SHORT_SIGNATURE(0, "II*\0", is_tiff_header), {KIND_OTHER, "a TIFF picture", no_text}},
    {SHORT_SIGNATURE(0, "MM\0*", is_tiff_header), {KIND_OTHER, "a TIFF picture", no_text}},
    {SHORT_SIGNATURE(8, "WEBP", is_riff), {KIND_OTHER, "a WebP picture", no_text}},
    {SHORT_SIGNATURE(8, "WAVE", is_riff), {KIND_OTHER, "a sound (WAV)", no_text}},
    {SHORT_SIGNATURE(8, "AVI ", is_riff), {KIND_OTHER, "a film (AVI)", no_text}},
    {SHORT_SIGNATURE(4, "ftyp", is_mp4), {KIND_OTHER, "a film or picture (MP4)", no_text}},
    {SIGNATURE(0, "\x1a\x45\xdf\xa3"), {KIND_OTHER, "a film (Matroska)", no_text}},
    {SIGNATURE(0, "OggS\0"), {KIND_OTHER, "a sound (Ogg)", no_text}},
    {SIGNATURE(0, "fLaC\0"), {KIND_OTHER, "a sound (FLAC)", no_text}},
    {SHORT_SIGNATURE(0, "ID3", is_mp3), {KIND_OTHER, "a sound (MP3)", no_text}},
    {SIGNATURE(0, "\177ELF"), {KIND_OTHER, "a program (ELF)", no_text}},
    {SIGNATURE(0, "\xcf\xfa\xed\xfe"), {KIND_OTHER, "a program (Mach-O)", no_text}},
    {SIGNATURE(0, "\xca\xfe\xba\xbe"), {KIND_OTHER, "a program (Java or Mach-O)", no_text}},
    {SIGNATURE(0, "\0asm"), {KIND_OTHER, "a program (WebAssembly)", no_text}},
    {SIGNATURE(0, "version https://git-lfs.github.com/spec/"),
     {KIND_OTHER, "a pointer of Git LFS and not the file itself", "fetch that with git lfs pull"}},
    {SIGNATURE(0, "\0\0\xfe\xff"), {KIND_OTHER, "text in UTF-32", "convert it with iconv -f UTF-32 -t UTF-8"}},
};

/* ---- formats without a signature --------------------------------------------------------------------------------- */

static bool contains(const struct glimpse *glimpse, const char *text)
{
    for (size_t at = 0; at + strlen(text) <= glimpse->n; at++)
        if (glimpse_has(glimpse, at, text, strlen(text)))
            return true;
    return false;
}

/* Many formats are zip archives: what lies in the archive tells which one it is. */
static const struct file_kind *find_zip(const struct glimpse *glimpse)
{
    static const struct file_kind torch = {KIND_OTHER, "a file of PyTorch's", is_model},
                                  arrays = {KIND_OTHER, "a file of NumPy arrays (.npz)", tokens_from_python},
                                  document = {KIND_OTHER, "a document of an office program or an e-book",
                                              "save it as plain text first"},
                                  zip = {KIND_OTHER, "a zip archive", unpack};
    if (!glimpse_has(glimpse, 0, "PK\3\4", 4))
        return NULL;
    if (contains(glimpse, "data.pkl"))
        return &torch;
    if (contains(glimpse, ".npy"))
        return &arrays;
    if (contains(glimpse, "[Content_Types].xml") || contains(glimpse, "_rels/.rels") || contains(glimpse, "mimetype"))
        return &document;
    return &zip;
}

/* The bytes of a header sum to the number in one of its fields, in octal; the field itself counts as spaces. */
static const struct file_kind *find_tar(const struct glimpse *glimpse)
{
    static const struct file_kind kind = {KIND_OTHER, "a tar archive", unpack};
    enum { HEADER = 512, FIELD = 148, FIELD_BYTES = 8 };
    if (glimpse->n < HEADER || !glimpse->bytes[0])
        return NULL;
    unsigned long sum = 0;
    for (size_t i = 0; i < HEADER; i++)
        sum += (unsigned char)glimpse->bytes[i];
    for (size_t i = FIELD; i < FIELD + FIELD_BYTES; i++) {
        sum -= (unsigned char)glimpse->bytes[i];
        sum += ' ';
    }
    char field[FIELD_BYTES + 1] = "";
    memcpy(field, glimpse->bytes + FIELD, FIELD_BYTES);
    return strtoul(field, NULL, 8) == sum ? &kind : NULL;
}

/* Does the file go on as a pickle of its protocol does?  In protocols 4 and 5 a frame of less than 4 GiB follows, in 2
 * and 3 a number for the first object comes soon. */
static bool goes_on_as_pickle(const struct glimpse *glimpse)
{
    enum { SOON = 64, TOO_SHORT = 16 /* for a frame */ };
    if (glimpse->size < TOO_SHORT)
        return true;
    if (glimpse->bytes[1] >= 4)
        return glimpse->bytes[2] == (char)0x95 && glimpse_u32(glimpse, 7) == 0;
    return memmem(glimpse->bytes, MIN(glimpse->n, (size_t)SOON), "q\0", 2) != NULL;
}

/* Pickles of protocols 2 to 5 begin with the protocol's number, and all end with a stop.  A file of an older
 * torch.save() begins with a number of its own, and goes on after the first stop. */
static const struct file_kind *find_pickle(const struct glimpse *glimpse)
{
    static const struct file_kind kind = {KIND_OTHER, "a pickle of Python's",
                                          "write its texts into a plain text file from Python first"};
    static const char torch[] = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
    static const struct file_kind model = {KIND_OTHER, "a file of PyTorch's", is_model};
    bool begins = glimpse->n >= 4 && glimpse->bytes[0] == (char)0x80;
    if (!begins || glimpse->bytes[1] < 2 || glimpse->bytes[1] > 5)
        return NULL;
    if (glimpse_has(glimpse, 2, torch, sizeof torch - 1))
        return &model;
    if (glimpse->last[GLIMPSE_LAST - 1] != '.' || !goes_on_as_pickle(glimpse))
        return NULL;
    return &kind;
}

static bool is_bitmap(const struct glimpse *glimpse)
{
    return glimpse_has(glimpse, 0, "BM", 2) && glimpse_u32(glimpse, 2) == glimpse->size && glimpse_u32(glimpse, 6) == 0;
}

/* The first bytes say where the header is. */
static bool is_windows_program(const struct glimpse *glimpse)
{
    uint32_t header = glimpse_u32(glimpse, 0x3c);
    return glimpse_has(glimpse, 0, "MZ", 2) && header < glimpse->n && glimpse_has(glimpse, header, "PE\0", 4);
}

static const struct file_kind *find_windows(const struct glimpse *glimpse)
{
    static const struct file_kind bitmap = {KIND_OTHER, "a BMP picture", no_text},
                                  program = {KIND_OTHER, "a program of Windows", no_text};
    if (is_bitmap(glimpse))
        return &bitmap;
    return is_windows_program(glimpse) ? &program : NULL;
}

static const struct file_kind *find_signature(const struct glimpse *glimpse)
{
    for (size_t i = 0; i < COUNT(signatures); i++) {
        if (!glimpse_has(glimpse, signatures[i].at, signatures[i].text, signatures[i].n))
            continue;
        if (!signatures[i].shows_more || signatures[i].shows_more(glimpse))
            return &signatures[i].kind;
    }
    return NULL;
}

const struct file_kind *kind_of_others(const struct glimpse *glimpse)
{
    typedef const struct file_kind *find_kind(const struct glimpse *glimpse);
    static find_kind *const finders[] = {find_signature, find_zip, find_pickle, find_tar, find_windows};
    for (size_t i = 0; i < COUNT(finders); i++) {
        const struct file_kind *kind = finders[i](glimpse);
        if (kind)
            return kind;
    }
    return NULL;
}
