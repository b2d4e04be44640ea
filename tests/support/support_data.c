/* support_data.c - see support_data.h. */
#include "support_data.h"

struct data_options options_for(const char *path)
{
    return (struct data_options){.path = path, .val_share = 0.1, .batch = 2, .seq_len = T};
}

void open_and_close(void *options) { close_dataset(open_dataset(options)); }

void expect_no_dataset(struct data_options options, int code, const char *part)
{
    expect_refusal(open_and_close, &options, code, part);
}

void expect_splits(const struct data_options *options, size_t n_train, size_t n_val)
{
    struct dataset *data = open_dataset(options);
    assert_int_equal(data->train.n, n_train);
    assert_int_equal(data->val.n, n_val);
    close_dataset(data);
}

char *write_letters(const char *name, size_t n, const char *alphabet)
{
    size_t letters = strlen(alphabet);
    char *text = allocate(n + 1, 1);
    for (size_t i = 0; i < n; i++) {
        size_t letter = i < letters ? i : random_words(1, STREAM_TEST, 0, i).word[0] % letters;
        text[i] = alphabet[letter];
    }
    char *path = write_file(name, text, n);
    free(text);
    return path;
}

char *write_numbered(const char *name, size_t n, bool shard)
{
    size_t header = shard ? SHARD_HEADER : 0;
    size_t size = header + n * sizeof(uint16_t);
    char *file = allocate(size, 1);
    if (shard)
        memcpy(file, (int32_t[]){SHARD_MAGIC, 1, (int32_t)n}, 3 * sizeof(int32_t));
    for (size_t i = 0; i < n; i++)
        memcpy(file + header + i * sizeof(uint16_t), &(uint16_t){(uint16_t)i}, sizeof(uint16_t));
    char *path = write_file(name, file, size);
    free(file);
    return path;
}
