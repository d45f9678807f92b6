/* Likelihood kernels of BEAGLE's processor plug-ins: one traversal of a tree, as BEAST and MrBayes ask for it. The problem
 * (tree, data, model) comes in a file of numbers, so that both sides compute the same log-likelihood:
 *
 *   states taxa patterns categories
 *   eigenvalues; right and left eigenvectors by rows; frequencies; rates of the categories; their probabilities
 *   weights of the patterns
 *   for each taxon its states, `states` standing for a gap
 *   lengths of the 2 taxa - 3 branches
 *   for each of the taxa - 2 inner nodes: node, child, branch of the child, child, branch of the child
 *   node, node, branch: where the tree is evaluated
 *
 * Nodes are numbered from the taxa on. One repetition is: transition matrices of all branches, vectors of all inner
 * nodes, log-likelihood. The figure is nanoseconds for a pattern and inner node. */
#include "peer.h"

#include <libhmsbeagle/beagle.h>
#include <math.h>

enum { BATCHES = 32 };

struct problem {
    int states, taxa, patterns, categories, instance;
    int *branches;
    double *lengths;
    BeagleOperation *operations;
    int near, far, branch;
    long calls;
    double log_likelihood;
};

static void *room(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory)
        peer_error(PEER_EXIT_FAILED, "cannot reserve %zu bytes", count * size);
    return memory;
}

static double number(FILE *file, const char *name) {
    double value;
    if (fscanf(file, "%lf", &value) != 1)
        peer_error(PEER_EXIT_WRONG_REQUEST, "the problem %s ends early, or holds what is no number", name);
    return value;
}

static int whole(FILE *file, const char *name, int least, int most) {
    double value = number(file, name);
    if (!(value >= least && value <= most) || value != floor(value))
        peer_error(PEER_EXIT_WRONG_REQUEST, "the problem %s: %g is no whole number from %d to %d", name, value, least,
                   most);
    return (int)value;
}

static double *numbers(FILE *file, const char *name, size_t count) {
    double *all = room(count, sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = number(file, name);
    return all;
}

static void need(int code, const char *what) {
    if (code < 0)
        peer_error(PEER_EXIT_FAILED, "BEAGLE: %s failed with code %d", what, code);
}

static void read_problem(struct problem *p, const char *name, char *version, size_t version_bytes) {
    FILE *file = fopen(name, "r");
    if (!file)
        peer_error(PEER_EXIT_WRONG_REQUEST, "cannot read %s: %s", name, strerror(errno));
    p->states = whole(file, name, 2, 64);
    p->taxa = whole(file, name, 3, 1 << 16);
    p->patterns = whole(file, name, 1, 1 << 24);
    p->categories = whole(file, name, 1, 64);
    size_t s = (size_t)p->states, inner = (size_t)p->taxa - 2, branches = 2 * (size_t)p->taxa - 3;
    BeagleInstanceDetails details;
    const long required = BEAGLE_FLAG_PROCESSOR_CPU | BEAGLE_FLAG_PRECISION_DOUBLE;
    const long preferred = BEAGLE_FLAG_VECTOR_AVX | BEAGLE_FLAG_VECTOR_SSE | BEAGLE_FLAG_THREADING_NONE;
    p->instance = beagleCreateInstance(p->taxa, (int)inner, p->taxa, p->states, p->patterns, 1, (int)branches,
                                       p->categories, 0, NULL, 0, preferred, required, &details);
    need(p->instance, "making an instance");
    snprintf(version, version_bytes, "BEAGLE %s, %s", beagleGetVersion(), details.implName);
    double *values = numbers(file, name, s), *right = numbers(file, name, s * s), *left = numbers(file, name, s * s);
    need(beagleSetEigenDecomposition(p->instance, 0, right, left, values), "the eigendecomposition");
    need(beagleSetStateFrequencies(p->instance, 0, numbers(file, name, s)), "frequencies");
    need(beagleSetCategoryRates(p->instance, numbers(file, name, (size_t)p->categories)), "rates");
    need(beagleSetCategoryWeights(p->instance, 0, numbers(file, name, (size_t)p->categories)), "weights");
    need(beagleSetPatternWeights(p->instance, numbers(file, name, (size_t)p->patterns)), "pattern weights");
    int *states = room((size_t)p->patterns, sizeof *states);
    for (int taxon = 0; taxon < p->taxa; taxon++) {
        for (int i = 0; i < p->patterns; i++)
            states[i] = whole(file, name, 0, p->states);
        need(beagleSetTipStates(p->instance, taxon, states), "states of a taxon");
    }
    p->lengths = numbers(file, name, branches);
    p->branches = room(branches, sizeof *p->branches);
    for (size_t i = 0; i < branches; i++)
        p->branches[i] = (int)i;
    p->operations = room(inner, sizeof *p->operations);
    int nodes = p->taxa + (int)inner - 1, last = (int)branches - 1;
    for (size_t i = 0; i < inner; i++) {
        BeagleOperation *o = &p->operations[i];
        *o = (BeagleOperation){0, BEAGLE_OP_NONE, BEAGLE_OP_NONE, 0, 0, 0, 0};
        o->destinationPartials = whole(file, name, p->taxa, nodes);
        o->child1Partials = whole(file, name, 0, nodes);
        o->child1TransitionMatrix = whole(file, name, 0, last);
        o->child2Partials = whole(file, name, 0, nodes);
        o->child2TransitionMatrix = whole(file, name, 0, last);
    }
    p->near = whole(file, name, 0, nodes);
    p->far = whole(file, name, 0, nodes);
    p->branch = whole(file, name, 0, last);
    fclose(file);
}

static void traverse(struct problem *p) {
    int zero = 0, none = BEAGLE_OP_NONE;
    need(beagleUpdateTransitionMatrices(p->instance, 0, p->branches, NULL, NULL, p->lengths, 2 * p->taxa - 3),
         "transition matrices");
    need(beagleUpdatePartials(p->instance, p->operations, p->taxa - 2, BEAGLE_OP_NONE), "vectors");
    need(beagleCalculateEdgeLogLikelihoods(p->instance, &p->near, &p->far, &p->branch, NULL, NULL, &zero, &zero, &none,
                                           1, &p->log_likelihood, NULL, NULL),
         "the log-likelihood");
}

static void repeat(void *state, struct peer_answer *answer) {
    struct problem *p = state;
    double batches[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        double begin = peer_now_seconds();
        for (long call = 0; call < p->calls; call++)
            traverse(p);
        batches[batch] = (peer_now_seconds() - begin) / (double)p->calls * 1e9 / p->patterns / (p->taxa - 2);
    }
    peer_answer_batches(answer, batches, BATCHES, BATCHES * p->calls);
    size_t used = strlen(answer->more);
    snprintf(answer->more + used, sizeof answer->more - used, ", \"log_likelihood\": %.17g", p->log_likelihood);
}

int main(int count, char **arguments) {
    struct peer_option options[] = {
        {"problem", "", "file of numbers: tree, data and model"},
        {"threads", "1", "threads; there is one whatever is asked for"},
        {"calls", "4", "traversals in a batch, of which there are 32"},
        {NULL, NULL, NULL},
    };
    char version[256];
    if (peer_parse(count, arguments, options)) {
        snprintf(version, sizeof version, "BEAGLE %s", beagleGetVersion());
        peer_ready("beagle", version);
        return 0;
    }
    struct problem problem = {0};
    problem.calls = peer_number(options, "calls", 1, 1000000);
    read_problem(&problem, peer_text(options, "problem"), version, sizeof version);
    traverse(&problem);
    int status = peer_serve("beagle", version, repeat, &problem);
    beagleFinalizeInstance(problem.instance);
    return status;
}
