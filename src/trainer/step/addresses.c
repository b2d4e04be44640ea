/* addresses.c - finds the lowest address that is free for the whole of a tensor's life.  Skip it at first: place.c says
 * what it is for, and comparing a life with all that came before it would find the same addresses, only slower.
 *
 * Time is cut into stretches of equally many positions; a long list has more of them.  They are the leaves of a binary
 * tree, whose nodes (no tasks, as those of depend.c) stand for longer and longer pieces of time:
 *
 *     node 1           |-------------------------------|
 *     nodes 2, 3       |---------------|---------------|
 *     nodes 4 .. 7     |-------|-------|-------|-------|      stretches 0 .. 3
 *     a life                       |===================|      begins within stretch 1; covers node 3
 *
 * A life is noted at the few nodes that together make up the time which it covers, and in the stretches of its ends.
 * When a life comes that covers only a part of a node, the ranges noted at the node are passed on to its two halves.
 * So a life, however long, looks at few nodes.  There it looks at ranges of addresses rather than at lives: ranges that
 * meet become one.
 */
#include "step_parts.h"

/* Addresses that are in use, as ranges in ascending order.  Ranges that meet are made one. */
struct used_ranges {
    struct range *ranges; /* n of them; no two meet */
    size_t n, cap;
};

enum { LIVES_PER_STRETCH = 128, MOST_NODES = 128 };
struct tree_node {
    struct used_ranges touched; /* of all lives that are there for some of its time */
    struct used_ranges covered; /* of lives that are there for all of it, if not yet passed on to the nodes below */
    struct life *lives;         /* a stretch's lives, which begin or end within it, by address */
    size_t n, cap;
};
struct address_map {
    struct tree_node *nodes;
    size_t n_stretches; /* a power of 2 */
    size_t positions;   /* positions of a stretch */
    /* Ranges that the new life must not meet.  The longest node comes first: it probably has the most ranges, so the
     * first search of it passes most of the addresses that are in use. */
    const struct used_ranges *sets[MOST_NODES];
    const struct tree_node *ends[2]; /* the stretches of its begin and its end, whose lives it must not meet */
    size_t n_sets, n_ends;
    size_t widest; /* positions of the longest node in sets[] */
};

struct address_map *new_address_map(const struct arena *arena)
{
    struct address_map *map = allocate(1, sizeof *map);
    map->n_stretches = 1;
    while (map->n_stretches * LIVES_PER_STRETCH < arena->n)
        map->n_stretches *= 2;
    map->positions = arena->n_positions / map->n_stretches + 1;
    map->nodes = allocate(2 * map->n_stretches, sizeof *map->nodes);
    return map;
}

void free_address_map(struct address_map *map)
{
    for (size_t i = 0; i < 2 * map->n_stretches; i++) {
        free(map->nodes[i].covered.ranges);
        free(map->nodes[i].touched.ranges);
        free(map->nodes[i].lives);
    }
    free(map->nodes);
    free(map);
}

static bool ends_before(const void *item, const void *key)
{
    const struct range *range = item;
    const size_t *address = key;
    return range->end < *address;
}

/* The first range that ends at this address or at a higher one. */
static size_t find_range(const struct used_ranges *used, size_t address)
{
    return lower_bound(&address, used->ranges, used->n, sizeof *used->ranges, ends_before);
}

/* Adds a range.  Ranges that meet it become one with it. */
static void add_range(struct used_ranges *used, size_t begin, size_t end)
{
    size_t at = find_range(used, begin);
    size_t next = at; /* the first range that lies wholly after the new one */
    while (next < used->n && used->ranges[next].begin <= end) {
        begin = MIN(begin, used->ranges[next].begin);
        end = MAX(end, used->ranges[next].end);
        next++;
    }
    if (next == at) { /* the new range meets no other */
        used->ranges = insert_item(used->ranges, &used->n, &used->cap, at, sizeof *used->ranges);
    } else {
        memmove(&used->ranges[at + 1], &used->ranges[next], (used->n - next) * sizeof *used->ranges);
        used->n -= next - at - 1;
    }
    used->ranges[at] = (struct range){begin, end};
}

/* The lowest address from `end` on at which a life does not lie across the border of two slabs. */
static size_t within_slab(size_t end, const struct life *life, size_t limit)
{
    bool lies_across = end % limit + life->bytes > limit;
    return lies_across ? round_up(end, limit) : end;
}

/* From life->arena_address on, the lowest address at which all bytes of the life are free, not across a multiple of the
 * limit. */
static size_t free_of_ranges(const struct used_ranges *used, const struct life *life, size_t limit)
{
    size_t at = life->arena_address;
    for (size_t i = find_range(used, at); i < used->n && used->ranges[i].begin < at + life->bytes; i++) {
        if (used->ranges[i].end > at)
            at = within_slab(used->ranges[i].end, life, limit);
    }
    return at;
}

/* Like free_of_ranges(), but in a stretch, where only lives count that this one meets in time. */
static size_t free_of_lives(const struct tree_node *stretch, const struct life *life, size_t limit)
{
    size_t at = life->arena_address;
    for (size_t i = 0; i < stretch->n && stretch->lives[i].arena_address < at + life->bytes; i++) {
        const struct life *held = &stretch->lives[i];
        if (held->first <= life->last && life->first <= held->last && held->arena_address + held->bytes > at)
            at = within_slab(held->arena_address + held->bytes, life, limit);
    }
    return at;
}

static bool lies_below(const void *item, const void *key)
{
    const struct life *life = item;
    const struct life *part = key;
    return life->arena_address < part->arena_address;
}

/* Adds the part of a life that lies in a stretch to the lives of that stretch, which are sorted by address. */
static void add_to_stretch(struct tree_node *stretch, const struct life *part)
{
    size_t i = lower_bound(part, stretch->lives, stretch->n, sizeof *stretch->lives, lies_below);
    struct life *below = i ? &stretch->lives[i - 1] : NULL;
    bool same_time = below && below->first == part->first && below->last == part->last;
    if (same_time && below->arena_address + below->bytes == part->arena_address) {
        below->bytes += part->bytes; /* the two become one */
        return;
    }
    stretch->lives = insert_item(stretch->lives, &stretch->n, &stretch->cap, i, sizeof *stretch->lives);
    stretch->lives[i] = *part;
}

enum meeting { MEETS_NOT, MEETS_PART, MEETS_ALL };

/* How much of a node's time, `positions` positions from `begin` on, a life meets. */
static enum meeting meeting_of(const struct life *life, size_t begin, size_t positions)
{
    if (life->last < begin || life->first >= begin + positions)
        return MEETS_NOT;
    if (life->first <= begin && life->last >= begin + positions - 1)
        return MEETS_ALL;
    return MEETS_PART;
}

/* Passes what covers a node on to both nodes below. */
static void pass_on(struct address_map *map, size_t node)
{
    struct used_ranges *all = &map->nodes[node].covered;
    for (size_t child = 2 * node; child <= 2 * node + 1; child++)
        for (size_t i = 0; i < all->n; i++) {
            add_range(&map->nodes[child].touched, all->ranges[i].begin, all->ranges[i].end);
            add_range(&map->nodes[child].covered, all->ranges[i].begin, all->ranges[i].end);
        }
    all->n = 0;
}

static void add_set(struct address_map *map, const struct used_ranges *set)
{
    CHECK(map->n_sets < MOST_NODES, "a life covers more than %d nodes", MOST_NODES);
    map->sets[map->n_sets++] = set;
}

/* Lists what a life without an address may meet, at the node and below.  Where the life covers only a part of a node,
 * what is noted at the node is passed on first. */
static void pass_on_and_list(struct address_map *map, size_t node, size_t begin, size_t positions,
                             const struct life *life)
{
    const struct tree_node *this_node = &map->nodes[node];
    enum meeting met = meeting_of(life, begin, positions);
    bool is_stretch = node >= map->n_stretches;
    if (met == MEETS_NOT)
        return;
    if (met == MEETS_ALL) {
        add_set(map, &this_node->touched);
        if (positions > map->widest) {
            map->sets[map->n_sets - 1] = map->sets[0];
            map->sets[0] = &this_node->touched;
            map->widest = positions;
        }
        return;
    }
    if (is_stretch) {
        add_set(map, &this_node->covered);
        map->ends[map->n_ends++] = this_node;
        return;
    }
    pass_on(map, node);
    pass_on_and_list(map, 2 * node, begin, positions / 2, life);
    pass_on_and_list(map, 2 * node + 1, begin + positions / 2, positions / 2, life);
}

/* Notes a life that has an address now, at the node and below. */
static void note_life(struct address_map *map, size_t node, size_t begin, size_t positions, const struct life *life)
{
    struct tree_node *this_node = &map->nodes[node];
    enum meeting met = meeting_of(life, begin, positions);
    bool is_stretch = node >= map->n_stretches;
    if (met == MEETS_NOT)
        return;
    add_range(&this_node->touched, life->arena_address, life->arena_address + life->bytes);
    if (met == MEETS_ALL) {
        add_range(&this_node->covered, life->arena_address, life->arena_address + life->bytes);
        return;
    }
    if (is_stretch) {
        struct life part = *life;
        part.first = MAX(life->first, begin);
        part.last = MIN(life->last, begin + positions - 1);
        add_to_stretch(this_node, &part);
        return;
    }
    note_life(map, 2 * node, begin, positions / 2, life);
    note_life(map, 2 * node + 1, begin + positions / 2, positions / 2, life);
}

/* The lowest address from life->arena_address on that is free in set or stretch i of those that the life may meet. */
static size_t free_in(const struct address_map *map, size_t i, const struct life *life, size_t limit)
{
    if (i < map->n_sets)
        return free_of_ranges(map->sets[i], life, limit);
    return free_of_lives(map->ends[i - map->n_sets], life, limit);
}

void hold_lowest(struct address_map *map, struct life *life, size_t limit)
{
    size_t n_positions = map->n_stretches * map->positions;
    life->arena_address = 0;
    map->n_sets = 0;
    map->n_ends = 0;
    map->widest = 0;
    pass_on_and_list(map, 1, 0, n_positions, life);
    size_t n = map->n_sets + map->n_ends;
    size_t agreed = 0; /* for how many sets and stretches in a row the address was free */
    for (size_t i = 0; agreed < n; i = (i + 1) % n) {
        size_t at = free_in(map, i, life, limit);
        agreed = at == life->arena_address ? agreed + 1 : 1;
        life->arena_address = at;
    }
    note_life(map, 1, 0, n_positions, life);
}
