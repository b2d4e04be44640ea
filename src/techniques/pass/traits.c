/* traits.c - what passes ask of one another before they run. */
#include "traits.h"

const struct pass_traits *traits_of(const struct pass *pass)
{
    static const struct pass_traits none;
    return pass->traits ? pass->traits : &none;
}

const struct pass *find_wanted(has_trait *trait, const struct run_facts *facts)
{
    size_t n;
    const struct pass *const *all = all_passes(&n);
    for (size_t i = 0; i < n; i++)
        if (all[i]->wanted(facts) && trait(traits_of(all[i])))
            return all[i];
    return NULL;
}

/* ---- would larger budgets change the plan? ----------------------------------------------------------------------- */

static bool chooses_early(const struct pass_traits *traits) { return traits->chooses_early && traits->chooses_early(); }

static bool fills_host(const struct pass_traits *traits) { return traits->fills_host && traits->fills_host(); }

enum replanning replanning_of(const struct run_facts *facts)
{
    if (!find_wanted(chooses_early, facts))
        return SAME_LIST;
    return facts->gather || find_wanted(fills_host, facts) ? LIST_MAY_CHANGE : SAME_LIST;
}

/* ---- room for what is to come ------------------------------------------------------------------------------------ */

size_t reserve_room(struct list *list, const struct run_facts *facts)
{
    size_t first = list->pool->n;
    size_t n;
    const struct pass *const *all = all_passes(&n);
    for (size_t i = 0; i < n; i++)
        if (all[i]->wanted(facts) && traits_of(all[i])->reserve)
            traits_of(all[i])->reserve(list, facts);
    return first;
}

void end_room(struct list *list, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        list->pool->tensors[i]->persistent = false; /* no task touches it, and so it has no bytes any more */
}
