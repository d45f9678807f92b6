/* n-queens on one thread: bit vectors with a look ahead, written for this comparison from the published description of
 * the m-queens search. A node is the columns and both diagonals in three words, its places those of the next row. Half of
 * the first row is searched and counted twice (an odd board's middle column is searched whole, half of its second row).
 * Before a child is entered, the row after its own is looked at: without a place there it is dropped. The search goes
 * in depth over a stack of its own. */
#include "peer.h"

struct node {
    uint32_t columns, left, right, places;
};

/* Solutions below a node, whose places are to be tried in a row that is not the last; `rows` are still empty. */
static uint64_t below(uint32_t mask, int rows, struct node first) {
    struct node stack[40];
    uint64_t found = 0;
    int depth = 0;
    stack[0] = first;
    while (depth >= 0) {
        struct node *node = &stack[depth];
        uint32_t places = node->places;
        if (!places) {
            depth--;
            continue;
        }
        uint32_t queen = places & -places;
        node->places = places ^ queen;
        uint32_t columns = node->columns | queen;
        uint32_t left = (node->left | queen) << 1, right = (node->right | queen) >> 1;
        uint32_t next = mask & ~(columns | left | right);
        int empty = rows - depth - 1; /* rows below this queen */
        if (empty == 1) {
            found += next != 0;
            continue;
        }
        uint32_t after = mask & ~(columns | left << 1 | right >> 1);
        if (next && after) {
            struct node child = {columns, left, right, next};
            stack[++depth] = child;
        }
    }
    return found;
}

static uint64_t solutions(int n) {
    uint32_t mask = n == 32 ? UINT32_MAX : (UINT32_C(1) << n) - 1;
    uint64_t half = 0;
    for (int column = 0; column < n / 2; column++) {
        uint32_t queen = UINT32_C(1) << column;
        struct node node = {queen, queen << 1, queen >> 1, 0};
        node.places = mask & ~(queen | queen << 1 | queen >> 1);
        half += below(mask, n - 1, node);
    }
    if (n % 2) {
        uint32_t queen = UINT32_C(1) << (n / 2);
        struct node node = {queen, queen << 1, queen >> 1, 0};
        node.places = (queen - 1) & ~(queen >> 1);
        half += below(mask, n - 1, node);
    }
    return 2 * half;
}

static void repeat(void *state, struct peer_answer *answer) {
    int n = *(int *)state;
    double start = peer_now_seconds();
    uint64_t found = solutions(n);
    answer->value = peer_now_seconds() - start;
    snprintf(answer->more, sizeof answer->more, ", \"solutions\": %llu", (unsigned long long)found);
}

int main(int count, char **arguments) {
    struct peer_option options[] = {
        {"n", "16", "rows of the board"},
        {"threads", "1", "for the sake of uniformity: it uses one"},
        {NULL, NULL, NULL},
    };
    const char *peer = "m-queens", *version = "look-ahead search with bit vectors, " __VERSION__;
    int probe = peer_parse(count, arguments, options);
    if (probe) {
        peer_ready(peer, version);
        return 0;
    }
    int n = (int)peer_number(options, "n", 4, 31);
    if (solutions(8) != 92 || solutions(9) != 352)
        peer_error(PEER_EXIT_FAILED, "the search is wrong");
    return peer_serve(peer, version, repeat, &n);
}
