/* support_tree.c - see support_tree.h. */
#include "support_tree.h"

#include "support_disk.h"
#include "trainer/file/paths.h"

struct name { /* a name in a folder */
    char *text;
    struct node *node; /* NULL: it was taken away */
};
struct names {
    struct name *name;
    size_t n, cap;
};
struct node { /* a file or a folder */
    bool is_folder;
    struct disk_file file;
    struct names seen; /* a folder's names as the program sees them */
    struct names sure; /* those that the disk has for sure */
};
enum { MOST_RENAMED = 2 };
struct change { /* what one call does to the names of a folder: the disk has all of it, or nothing */
    struct node *folder;
    struct name names[MOST_RENAMED]; /* these names become these nodes */
    int n;
    bool is_sure;
};
struct tree {
    struct node *root;
    struct node **nodes; /* all that were made, to free them */
    size_t n_nodes, cap_nodes;
    struct change *changes;
    size_t n_changes, cap_changes;
};

static struct node *new_node(struct tree *tree, bool is_folder)
{
    struct node *node = allocate(1, sizeof *node);
    node->is_folder = is_folder;
    GROW(tree->nodes, tree->cap_nodes, tree->n_nodes + 1);
    tree->nodes[tree->n_nodes++] = node;
    return node;
}

struct tree *new_tree(void)
{
    struct tree *tree = allocate(1, sizeof *tree);
    tree->root = new_node(tree, true);
    return tree;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static struct name *find_name(struct names *names, const char *text)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->name[i].text, text) == 0)
            return &names->name[i];
    return NULL;
}

static void set_name(struct names *names, const char *text, struct node *node)
{
    struct name *name = find_name(names, text);
    if (!name) {
        GROW(names->name, names->cap, names->n + 1);
        name = &names->name[names->n++];
        name->text = copy_string(text);
    }
    name->node = node;
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->name[i].text);
    free(names->name);
}

/* What the program finds there; NULL: nothing. */
static struct node *node_at(struct tree *tree, const char *path)
{
    struct node *node = tree->root;
    while (node && *path) {
        size_t n = strcspn(path, "/");
        char *text = format_string("%.*s", (int)n, path);
        struct name *name = find_name(&node->seen, text);
        node = name ? name->node : NULL;
        free(text);
        path += n;
        path += strspn(path, "/");
    }
    return node;
}

static struct node *parent_of(struct tree *tree, const char *path)
{
    char *parent = format_string("%.*s", (int)(last_part(path) - path), path);
    struct node *node = node_at(tree, parent);
    CHECK(node && node->is_folder, "%s lies in no folder", path);
    free(parent);
    return node;
}

/* ---- changes of a folder ----------------------------------------------------------------------------------------- */

static struct change *new_change(struct tree *tree, struct node *folder)
{
    GROW(tree->changes, tree->cap_changes, tree->n_changes + 1);
    struct change *change = &tree->changes[tree->n_changes++];
    *change = (struct change){.folder = folder};
    return change;
}

static void change_name(struct change *change, const char *path, struct node *node)
{
    const char *text = last_part(path);
    change->names[change->n++] = (struct name){copy_string(text), node};
    set_name(&change->folder->seen, text, node);
}

static void make_sure(struct change *change)
{
    for (int i = 0; i < change->n && !change->is_sure; i++)
        set_name(&change->folder->sure, change->names[i].text, change->names[i].node);
    change->is_sure = true;
}

static void sync_node(struct tree *tree, struct node *node)
{
    if (!node->is_folder) {
        disk_sync(&node->file);
        return;
    }
    for (size_t i = 0; i < tree->n_changes; i++)
        if (tree->changes[i].folder == node)
            make_sure(&tree->changes[i]);
}

/* Changes the last name of call->path, and with it that of call->new_path. */
static void change_folder(struct tree *tree, const struct call *call)
{
    struct node *old = node_at(tree, call->path);
    struct change *change = new_change(tree, parent_of(tree, call->path));
    switch (call->kind) {
    case CALL_CREATE:
        change_name(change, call->path, new_node(tree, false));
        return;
    case CALL_MKDIR:
        change_name(change, call->path, new_node(tree, true));
        return;
    case CALL_REMOVE:
        change_name(change, call->path, NULL);
        return;
    case CALL_RENAME:
        change_name(change, call->path, NULL);
        change_name(change, call->new_path, old);
        return;
    case CALL_EXCHANGE:
        change_name(change, call->path, node_at(tree, call->new_path));
        change_name(change, call->new_path, old);
        return;
    case CALL_WRITE:
    case CALL_SYNC:
        break;
    }
    CHECK(false, "call %d changes no folder", (int)call->kind);
}

void apply_call(struct tree *tree, const struct call *call)
{
    struct node *node = node_at(tree, call->path);
    if (call->kind == CALL_WRITE)
        disk_write(&node->file, call->bytes, call->n, node->file.n);
    else if (call->kind == CALL_SYNC)
        sync_node(tree, node);
    else
        change_folder(tree, call);
}

/* ---- the power goes ---------------------------------------------------------------------------------------------- */

static void put_file(struct draws *draws, struct node *node, const char *path)
{
    cut_file(&node->file, draws);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    if (node->file.sure_n > 0) /* a file without bytes has no array of them */
        assert_int_equal(fwrite(node->file.sure, 1, node->file.sure_n, file), node->file.sure_n);
    assert_int_equal(fclose(file), 0);
}

static void put_folder(struct draws *draws, struct node *folder, const char *path)
{
    make_folder(path);
    for (size_t i = 0; i < folder->sure.n; i++) {
        char *below = format_string("%s/%s", path, folder->sure.name[i].text);
        struct node *node = folder->sure.name[i].node;
        if (node && node->is_folder)
            put_folder(draws, node, below);
        else if (node)
            put_file(draws, node, below);
        free(below);
    }
}

void cut_tree(struct tree *tree, struct draws *draws, const char *path)
{
    for (size_t i = 0; i < tree->n_changes; i++)
        if (draw_below(draws, 2))
            make_sure(&tree->changes[i]);
    put_folder(draws, tree->root, path);
}

void free_tree(struct tree *tree)
{
    for (size_t i = 0; i < tree->n_nodes; i++) {
        free_names(&tree->nodes[i]->seen);
        free_names(&tree->nodes[i]->sure);
        empty_file(&tree->nodes[i]->file);
        free(tree->nodes[i]);
    }
    for (size_t i = 0; i < tree->n_changes; i++)
        for (int k = 0; k < tree->changes[i].n; k++)
            free(tree->changes[i].names[k].text);
    free(tree->nodes);
    free(tree->changes);
    free(tree);
}
