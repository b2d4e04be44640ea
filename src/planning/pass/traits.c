/* traits.c - what passes ask of one another before they run. */
#include "traits.h"

const struct pass_traits *traits_of(const struct pass *pass)
{
    static const struct pass_traits none;
    return pass->traits ? pass->traits : &none;
}

bool has_trait(const struct pass *pass, enum trait trait)
{
    const struct pass_traits *traits = traits_of(pass);
    unsigned all = traits->always;
    if (traits->by_options)
        all |= traits->by_options();
    if (traits->remade_tensors)
        all |= KNOWS_REMADE_TENSORS;
    else if (all & MAKES_ROOM)
        all |= MAKES_UNKNOWN_ROOM;
    if (traits->can_make_fit)
        all |= KNOWS_WHAT_FITS;
    if (traits->reserve)
        all |= RESERVES_ROOM;
    if (traits->blamed_at_end)
        all |= IS_CHECKED_AT_END;
    return all & trait;
}

const struct pass *find_wanted(enum trait trait, const struct run_facts *facts)
{
    size_t n;
    const struct pass *const *all = all_passes(&n);
    for (size_t i = 0; i < n; i++)
        if (all[i]->wanted(facts) && has_trait(all[i], trait))
            return all[i];
    return NULL;
}

enum replanning replanning_of(const struct run_facts *facts)
{
    bool may_change = find_wanted(CHOOSES_EARLY, facts) && find_wanted(TAKES_UNKNOWN_ROOM, facts);
    return may_change ? LIST_MAY_CHANGE : SAME_LIST;
}

/* ---- room for what is to come ------------------------------------------------------------------------------------ */

struct reserved_room reserve_room(struct list *list, const struct run_facts *facts)
{
    struct reserved_room room = {.first = list->pool->n};
    size_t n;
    const struct pass *const *all = all_passes(&n);
    for (size_t i = 0; i < n; i++)
        if (all[i]->wanted(facts) && has_trait(all[i], RESERVES_ROOM))
            traits_of(all[i])->reserve(list, facts);
    room.end = list->pool->n;
    return room;
}

void free_room(struct list *list, struct reserved_room room)
{
    for (size_t i = room.first; i < room.end; i++)
        list->pool->tensors[i]->persistent = false; /* no task touches it, and so it has no bytes any more */
}
