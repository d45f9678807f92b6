//! Tasks by declaration.

/// Makes a function on blocks a [`Task`](crate::prelude::Task) of the same name.
///
/// `axes(..)` names the axes of the iteration space, outermost first. Blocks end anywhere along an axis or, with `every N`,
/// at multiples of `N`: where partial sums end is part of a result. `flops = 2.0` is the work of one point. Each parameter of
/// type [`Read`](crate::prelude::Read), [`Write`](crate::prelude::Write), [`Update`](crate::prelude::Update) or
/// [`Reduce`](crate::prelude::Reduce) says by `#[at(..)]` what cuts each of its dimensions:
///
/// | | |
/// |---|---|
/// | `i` | the axis `i` |
/// | `:` | nothing: a block has all of the dimension |
/// | `i +- 1`, `i - 1 + 2` | the axis `i`, and so many elements before and after; the body receives a [`Window`](crate::prelude::Window) |
/// | `i +- half(taps, 0)` | the same, by half of the length of dimension 0 of the parameter `taps` |
///
/// An axis that cuts no dimension of what is written is folded there ([`LeafContext::first`](crate::prelude::LeafContext::first)),
/// or reduced, for a parameter of type `Reduce`. Parameters of type `f32`, `f64` and `u64` are passed by value: a call is
/// given them by the function `scalars`, which comes with the task. One parameter may be
/// `context: &mut LeafContext<'_>`. The body sees views of blocks that lie in its memory.
///
/// ```
/// use multigrain::prelude::*;
///
/// /// C = A B + gamma, by sums that end every 64.
/// #[task(axes(m, n, k every 64), flops = 2.0)]
/// fn product(
///     #[at(m, k)] a: Read<f64, 2>,
///     #[at(k, n)] b: Read<f64, 2>,
///     #[at(m, n)] c: Write<f64, 2>,
///     gamma: f64,
///     context: &mut LeafContext<'_>,
/// ) {
///     for i in 0..c.len(0) {
///         let row = c.row_mut(&[i]);
///         if context.first() {
///             row.fill(gamma);
///         }
///         for (k, a) in a.row(&[i]).iter().enumerate() {
///             row.iter_mut().zip(b.row(&[k])).for_each(|(c, b)| *c += a * b);
///         }
///     }
/// }
///
/// # fn main() -> Result<(), Error> {
/// let mut program = Program::new();
/// let task = program.task(product);
/// let a = program.array::<f64, 2>("A", [30, 200], Role::Input)?;
/// let b = program.array::<f64, 2>("B", [200, 40], Role::Input)?;
/// let c = program.array::<f64, 2>("C", [30, 40], Role::Output)?;
/// program.call(task, (a.all(), b.all(), c.all()), product::scalars(0.5))?;
/// # let job = Job::new("product", program).with_source(a, Source::Generated { seed: 1 });
/// # let outcome = Runtime::with_memory("16MiB")?.run(&job, Settings::default())?;
/// # assert!(outcome.values(c)?.iter().all(|&c| c == 0.5));
/// # Ok(())
/// # }
/// ```
pub use multigrain_macro::task;
