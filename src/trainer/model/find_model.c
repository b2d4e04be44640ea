/* find_model.c - finds models, by a file's first bytes and by the names in a folder, and the files beside a model. */
#include "model.h"
#include "trainer/base/module.h"

#include <libgen.h>

enum { FIRST_BYTES = 512, MOST_SAFE_HEADER_BYTES = 100000000 };

char *read_first_bytes(const char *path, size_t most, size_t *n)
{
    struct reader *reader = open_reader(path);
    char *head = allocate(most + 1, 1);
    *n = reader->size < most ? (size_t)reader->size : most;
    read_at(reader, head, *n, 0);
    close_reader(reader);
    return head;
}

bool fits_safetensors(const char *head, size_t n)
{
    uint64_t length;
    if (n < 9)
        return false;
    memcpy(&length, head, sizeof length);
    return length <= MOST_SAFE_HEADER_BYTES && head[8] == '{';
}

bool begins_json(const char *head) { return head[strspn(head, " \t\r\n")] == '{'; }

bool is_json(const char *path)
{
    size_t n;
    char *head = read_first_bytes(path, FIRST_BYTES, &n);
    bool yes = begins_json(head) && !fits_safetensors(head, n);
    free(head);
    return yes;
}

char *model_in_folder(const char *folder)
{
    static const char *const models[] = {MODEL_FILE, MODEL_INDEX};
    for (size_t i = 0; i < COUNT(models); i++) {
        char *path = format_string("%s/%s", folder, models[i]);
        if (exists(path)) /* also a link to what has not been fetched: opening it says so */
            return path;
        free(path);
    }
    return NULL;
}

char *file_beside(const char *path, const char *name)
{
    char *copy = copy_string(path);
    char *result = format_string("%s/%s", dirname(copy), name);
    free(copy);
    return result;
}

json_t *read_json(const char *path)
{
    json_error_t error;
    char *text = read_text(path);
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!json)
        fail(EXIT_FAILED, "%s is no valid JSON: line %d: %s; get a fresh copy", path, error.line, error.text);
    if (!json_is_object(json))
        fail(EXIT_FAILED, "%s is damaged: expected a JSON object, {...}; get a fresh copy", path);
    return json;
}

void refuse_foreign_file(const char *path)
{
    const struct formats *formats = find_formats();
    if (formats)
        formats->refuse_model(path);
}

void refuse_foreign_folder(const char *folder)
{
    const struct formats *formats = find_formats();
    if (formats)
        formats->refuse_folder(folder);
}
