//! How the model checker is run: see "Model checks" in SLEEP.md.

/// Explores `body` with at most `preemptions` involuntary switches of threads in one execution, or with as many as
/// the environment variable `LOOM_MAX_PREEMPTIONS` says; `None` explores every interleaving.
pub(crate) fn check(preemptions: Option<usize>, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(preemptions);
    model.check(body);
}
