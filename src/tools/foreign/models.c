/* models.c - refuses models in a form that is not read here, with a sentence on what the file is and how to go on.
 *
 * The first bytes of a file say what it is.  A safetensors file begins with the length of its header, and those eight
 * bytes may be the beginning of anything else, so what fits them comes first.  Forms without such bytes are known by
 * their names, which their programs give them.
 */
#include "foreign.h"
#include "trainer/model/model.h"
#include "trainer/model_files/model_files.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_BYTES = 512, PICKLE_BYTES = 1 << 16 };

struct form {
    const char *noun; /* "a GGUF file"; NULL: the form is not known here */
    const char *way;  /* how to go on */
};

static const char save_anew[] =
    "load it in Python and write it as safetensors, with save_pretrained() of transformers, or "
    "save_file() of safetensors.torch under GPT-2's names";
static const char save_arrays[] = "write its arrays under GPT-2's names with save_file() of safetensors.numpy";
static const char unpack[] = "unpack it first";
static const char to_train_on[] = "models are .safetensors files, llm.c's .bin files, and folders with one; a text to "
                                  "train on is given to --data";
static const char of_training[] = "the state of an optimizer, or another part of a training, in PyTorch's pickle form";
static const char other_file[] = "give the file with the model, model.safetensors or model_N.bin";

/* Files that have these n bytes at byte `at`. */
static const struct {
    size_t at, n;
    const char *bytes;
    struct form form;
} beginnings[] = {
    {0, 4, "GGUF", {"a GGUF file of llama.cpp", "give the model that it was made of, as safetensors"}},
    {0, 4, "lmgg", {"a GGML file of llama.cpp", "give the model that it was made of, as safetensors"}},
    {0, 4, "tjgg", {"a GGML file of llama.cpp", "give the model that it was made of, as safetensors"}},
    {0, 6, "\x93NUMPY", {"an array of NumPy", save_arrays}},
    {0, 8, "\x89HDF\r\n\x1a\n", {"an HDF5 file, as TensorFlow and Keras write", save_anew}},
    {4, 4, "TFL3", {"a model for TensorFlow Lite", save_anew}},
    {0, 2, "\x1f\x8b", {"packed with gzip", unpack}},
    {0, 4, "\x28\xb5\x2f\xfd", {"packed with zstd", unpack}},
    {0, 5, "\xfd\x37zXZ", {"packed with xz", unpack}},
    {0, 3, "BZh", {"packed with bzip2", unpack}},
    {0, 6, "7z\xbc\xaf\x27\x1c", {"packed with 7-Zip", unpack}},
    {0, 4, "Rar!", {"packed with RAR", unpack}},
    {257, 5, "ustar", {"a tar archive", unpack}},
    {0, 27, "version https://git-lfs.git", {"a pointer that Git LFS keeps in place of the file", "run git lfs pull"}},
    {0, 9, "<!DOCTYPE", {"a web page", "the download went wrong: fetch the file itself"}},
    {0, 9, "<!doctype", {"a web page", "the download went wrong: fetch the file itself"}},
    {0, 5, "<html", {"a web page", "the download went wrong: fetch the file itself"}},
    {0, 8, "\x89PNG\r\n\x1a\n", {"a PNG picture", to_train_on}},
    {0, 3, "\xff\xd8\xff", {"a JPEG picture", to_train_on}},
    {0, 8, "YARDSNAP", {"a snapshot of a training", "`yard ckpt export` makes a model of it"}},
    {0, 7, "YARDTRC", {"a trace that yard wrote", "`yard view` shows it; give a checkpoint, which --save writes"}},
    {0,
     16,
     "{\"run\":{\"model\":",
     {"a log that yard wrote", "`yard plot` draws it; give a checkpoint, which --save writes"}},
    {0, 4, "\x88\xd8\x34\x01", {"a token shard of llm.c", "give it to --data"}},
    {0, 4, "\xc8\xd7\x34\x01", {"a tokenizer of llm.c", other_file}},
    {0, 4, "\x8f\xd8\x34\x01", {"the optimizer's state of an llm.c run", other_file}},
    {0, 4, "\xc7\xd7\x34\x01", {"llm.c's file of values to debug with", other_file}},
    {0, 4, "\x8a\xd8\x34\x01", {"an evaluation set of llm.c", other_file}},
    {0, 4, "\xa1\xd9\x34\x01", {"a token shard of llm.c for Llama 3", "only GPT-2 is computed here"}},
    {0, 4, "\xa3\xd9\x34\x01", {"a Llama 3 model of llm.c", "only GPT-2 is computed here"}},
};

/* Files that have such a part in their names. */
static const struct {
    const char *part;
    struct form form;
} known_names[] = {
    {".ckpt.data-", {"a part of a TensorFlow checkpoint", save_anew}},
    {".ckpt.index", {"a part of a TensorFlow checkpoint", save_anew}},
    {".ckpt.meta", {"a part of a TensorFlow checkpoint", save_anew}},
    {"saved_model.pb", {"a TensorFlow graph", save_anew}},
    {".msgpack", {"a Flax model", save_anew}},
    {".onnx", {"an ONNX graph", "give the model that it was made of, as safetensors"}},
};

static bool holds(const char *bytes, size_t n, const char *text)
{
    return memmem(bytes, n, text, strlen(text)) != NULL;
}

static bool is_named_as_state(const char *path)
{
    static const char *const parts[] = {"optimizer", "scheduler", "rng_state", "training_args", "scaler"};
    for (size_t i = 0; i < COUNT(parts); i++)
        if (begins_with(last_part(path), parts[i]))
            return true;
    return false;
}

/* The form of a pickle, or of an archive of PyTorch, which begins with a pickle: the names in it tell what it holds. */
static struct form pickle_form(const char *path)
{
    size_t n;
    char *head = read_first_bytes(path, PICKLE_BYTES, &n);
    bool has_state = holds(head, n, "param_groups") || holds(head, n, "exp_avg");
    bool has_model = holds(head, n, "wte.weight");
    free(head);
    if (is_named_as_state(path) || (has_state && !has_model))
        return (struct form){of_training, "give the model, model.safetensors"};
    return (struct form){"a model of PyTorch in pickle form", save_anew};
}

/* The form of a zip archive: the name of its first file tells what it is. */
static struct form archive_form(const char *path, const char *head, size_t n)
{
    static const char *const of_pytorch[] = {".pt", ".pth", ".bin", ".ckpt"};
    bool pytorch = holds(head, n, "data.pkl");
    for (size_t i = 0; i < COUNT(of_pytorch); i++)
        if (ends_with(path, of_pytorch[i]))
            pytorch = true;
    if (pytorch)
        return pickle_form(path);
    if (holds(head, n, ".npy") || ends_with(path, ".npz"))
        return (struct form){"an archive of NumPy arrays (.npz)", save_arrays};
    return (struct form){"a zip archive", unpack};
}

static struct form json_form(const char *path)
{
    if (strcmp(last_part(path), "config.json") == 0)
        return (struct form){"the description of a model", "give its folder, or the model beside it"};
    return (struct form){"a JSON text", "give the folder, or the model beside it"};
}

static bool is_zip(const char *head, size_t n) { return n >= 4 && memcmp(head, "PK\3\4", 4) == 0; }

static bool is_pickle(const char *head, size_t n)
{
    return n >= 2 && (unsigned char)head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
}

/* A character may be cut at the end of the bytes. */
static bool is_text(const char *head, size_t n)
{
    return n > 0 && valid_utf8(head, n) + UTF8_BYTES > n && !memchr(head, '\0', n);
}

static struct form form_of_bytes(const char *head, size_t n)
{
    struct form form = {.noun = NULL};
    for (size_t i = 0; i < COUNT(beginnings); i++) {
        size_t end = beginnings[i].at + beginnings[i].n;
        if (n >= end && memcmp(head + beginnings[i].at, beginnings[i].bytes, beginnings[i].n) == 0)
            form = beginnings[i].form;
    }
    return form;
}

static struct form form_of_name(const char *path)
{
    for (size_t i = 0; i < COUNT(known_names); i++)
        if (strstr(last_part(path), known_names[i].part))
            return known_names[i].form;
    return (struct form){.noun = NULL};
}

/* The file begins with these bytes. */
static struct form find_form(const char *path, const char *head, size_t n)
{
    if (fits_safetensors(head, n))
        return (struct form){.noun = NULL};
    if (is_pickle(head, n))
        return pickle_form(path);
    if (is_zip(head, n))
        return archive_form(path, head, n);
    struct form form = form_of_bytes(head, n);
    if (!form.noun)
        form = form_of_name(path);
    if (!form.noun && begins_json(head))
        form = json_form(path);
    if (!form.noun && is_text(head, n))
        form = (struct form){"a text", to_train_on};
    return form;
}

static struct form read_form(const char *path)
{
    size_t n;
    char *head = read_first_bytes(path, FIRST_BYTES, &n);
    struct form form = find_form(path, head, n);
    free(head);
    return form;
}

static void refuse_if_foreign_model(const char *path)
{
    struct form form = read_form(path);
    if (form.noun)
        fail(EXIT_USAGE, "%s is %s, not a model that is read here: %s", path, form.noun, form.way);
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

/* Is this the form of a file that holds no model, but lies beside one? */
static bool is_aside(const struct form *form) { return form->noun == of_training || form->way == other_file; }

/* Is this the form of a file that any folder may have, and that says nothing of a model? */
static bool is_unrelated(const struct form *form) { return form->way == to_train_on || form->way == unpack; }

static _Noreturn void fail_for_name(const char *folder, const char *name)
{
    if (strstr(name, "-of-"))
        fail(EXIT_USAGE, "%s has shards of a model, such as %s, but no %s, which says what is in which: fetch it too",
             folder, name, MODEL_INDEX);
    fail(EXIT_USAGE, "%s has no %s: give the file itself, such as %s/%s", folder, MODEL_FILE, folder, name);
}

static bool is_readable_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, R_OK) == 0;
}

struct found_file { /* the file of a folder that tells most about it */
    char *name;
    struct form form; /* its noun is NULL if there is no such file */
};

/* Takes the file `name` instead of the one that was found, if it tells more. */
static void look_at_file(struct found_file *found, const char *folder, const char *name)
{
    char *path = join_path(folder, name);
    if (is_readable_file(path)) {
        if (ends_with(path, ".safetensors") || has_magic(path, LLMC_MODEL_MAGIC))
            fail_for_name(folder, name);
        struct form form = is_json(path) ? (struct form){.noun = NULL} : read_form(path);
        bool tells_more = !found->form.noun || (is_aside(&found->form) && !is_aside(&form));
        if (form.noun && !is_unrelated(&form) && tells_more) {
            free(found->name);
            found->name = copy_string(name);
            found->form = form;
        }
    }
    free(path);
}

static struct found_file look_into(const char *folder)
{
    struct found_file found = {.name = NULL};
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        look_at_file(&found, folder, entries[i]->d_name);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return found;
}

static void refuse_if_foreign_models_in(const char *folder)
{
    struct found_file found = look_into(folder);
    char *config = format_string("%s/config.json", folder);
    if (!found.form.noun && exists(config))
        fail(EXIT_USAGE, "%s has a config.json, but no %s, the model that it describes: fetch that too", folder,
             MODEL_FILE);
    free(config);
    if (found.form.noun)
        fail(EXIT_USAGE, "%s has no %s, and its %s is %s, not a model that is read here: %s", folder, MODEL_FILE,
             found.name, found.form.noun, found.form.way);
}

const struct formats formats = {
    .kind = kind_of_others,
    .refuse_if_foreign_file = refuse_if_foreign_model,
    .refuse_if_foreign_folder = refuse_if_foreign_models_in,
};
