//! Random programs.

use super::reductions::{Dot, RankK};
use super::rng::Rng;
use super::tasks::{Combine, Number, Product, ProductUpdate, Scale, Stencil, Transpose};
use multigrain_program::{Array, ElementType, Max, Operator, Program, ProgramError, Role, Scalars, Sum, TaskHandle};

/// A random program: a few arrays of one to three dimensions (lengths from 1 up, primes among them) with random roles,
/// and up to 24 calls of the test tasks on random blocks. Some blocks are whole arrays, some repeat or chain, some
/// overlap in part, some are read without ever being written.
pub fn random_program(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let mut program = Program::new();
    let kinds = 1 + rng.below(2);
    let mut writers: Vec<Box<dyn Writer>> = Vec::new();
    for _ in 0..kinds {
        writers.push(match rng.below(3) {
            0 => Box::new(Pools::<f32>::new(&mut program, &mut rng)),
            1 => Box::new(Pools::<f64>::new(&mut program, &mut rng)),
            _ => Box::new(Pools::<u8>::new(&mut program, &mut rng)),
        });
    }
    let calls = rng.range(1, 24);
    // Some tries are refused: overlapping arguments, shapes that fit nowhere.
    for _ in 0..20 * calls {
        if program.calls().len() as u64 >= calls {
            break;
        }
        let writer = rng.below(kinds) as usize;
        writers[writer].write(&mut program, &mut rng);
    }
    program
}

/// Content for the arrays of a program, row-major as its arrays are declared: small numbers, so that sums stay exact
/// for long and nothing overflows.
pub fn random_bytes(program: &Program, seed: u64) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(seed ^ 0x5eed_da7a);
    let mut small = || rng.below(17) as f32 - 8.0;
    let content = |array: &multigrain_program::ArrayDecl| {
        let elements = 0..array.shape.elements();
        match array.element {
            ElementType::F32 => elements.flat_map(|_| (small() / 4.0).to_le_bytes()).collect(),
            ElementType::F64 => elements.flat_map(|_| (f64::from(small()) / 4.0).to_le_bytes()).collect(),
            ElementType::C64 => {
                elements.flat_map(|_| [small().to_le_bytes(), small().to_le_bytes()].concat()).collect()
            }
            other => {
                let bytes = |number: f32| (number as i64).to_le_bytes();
                elements.flat_map(|_| bytes(small()).into_iter().take(other.size_bytes() as usize)).collect()
            }
        }
    };
    program.arrays().iter().map(content).collect()
}

/// Appends a random call, or leaves it.
trait Writer {
    fn write(&self, program: &mut Program, rng: &mut Rng);
}

struct Member<T, const R: usize> {
    array: Array<T, R>,
    shape: [u64; R],
    written: bool,
}

/// Arrays of one element type and rank.
struct Pool<T: Number, const R: usize> {
    members: Vec<Member<T, R>>,
    combine: TaskHandle<Combine<T, R>>,
    scale: TaskHandle<Scale<T, R>>,
}

impl<T: Number, const R: usize> Pool<T, R> {
    fn new(program: &mut Program, rng: &mut Rng, longest: u64) -> Pool<T, R> {
        let (combine, scale) = (program.task(Combine::default()), program.task(Scale::default()));
        let mut members = Vec::new();
        let common = [0; R].map(|_| length(rng, longest));
        for _ in 0..rng.range(2, 4) {
            let shape = if rng.percent(60) { common } else { common.map(|_| length(rng, longest)) };
            let role = match rng.below(6) {
                0 | 1 => Role::Input,
                2 => Role::Temporary,
                3 | 4 => Role::Output,
                _ => Role::InOut,
            };
            let name = format!("{}{R}{}", T::TYPE, program.arrays().len());
            if let Ok(array) = program.array(&name, shape, role) {
                members.push(Member { array, shape, written: role != Role::Input });
            }
        }
        Pool { members, combine, scale }
    }

    fn any(&self, rng: &mut Rng, written: bool) -> Option<&Member<T, R>> {
        let fitting: Vec<_> = self.members.iter().filter(|m| m.written || !written).collect();
        rng.pick(&fitting).copied()
    }

    fn write(&self, program: &mut Program, rng: &mut Rng) -> Option<Result<(), ProgramError>> {
        let (out, a, b) = (self.any(rng, true)?, self.any(rng, false)?, self.any(rng, false)?);
        let limit: [u64; R] = std::array::from_fn(|d| out.shape[d].min(a.shape[d]).min(b.shape[d]));
        let grain = limit.map(|n| n.div_ceil(3).max(1));
        let len = lengths(rng, limit, grain);
        let mut place = |m: &Member<T, R>| m.array.block(starts(rng, m.shape, len, grain), len);
        let (out, a, b) = (place(out), place(a), place(b));
        let factor = Scalars::new().with_u64(1 + rng.below(2));
        Some(if rng.percent(50) {
            program.call(self.combine, (a, b, out), factor)
        } else {
            program.call(self.scale, (out, a), Scalars::new())
        })
    }
}

/// A length of which 1, primes and multiples of 4 are all likely.
fn length(rng: &mut Rng, longest: u64) -> u64 {
    match rng.below(8) {
        0 => 1,
        1 | 2 => *rng.pick(&[2, 3, 5, 7, 11, 13]).unwrap_or(&2),
        3 | 4 => 4 * rng.range(1, longest.div_ceil(4)),
        _ => rng.range(1, longest),
    }
    .min(longest)
}

/// Lengths of a block: often those of a grid, so that blocks repeat.
fn lengths<const R: usize>(rng: &mut Rng, limit: [u64; R], grain: [u64; R]) -> [u64; R] {
    match rng.below(4) {
        0 => limit,
        1 | 2 => grain,
        _ => limit.map(|n| rng.range(1, n)),
    }
}

/// Where a block of these lengths begins: often on a grid.
fn starts<const R: usize>(rng: &mut Rng, shape: [u64; R], len: [u64; R], grain: [u64; R]) -> [u64; R] {
    let on_grid = rng.percent(75);
    std::array::from_fn(|d| {
        let last = shape[d] - len[d];
        if on_grid { rng.below(last / grain[d] + 1) * grain[d] } else { rng.range(0, last) }
    })
}

/// Arrays of one element type, and the tasks on them.
struct Pools<T: Number>
where
    Sum: Operator<T>,
    Max: Operator<T>,
{
    one: Pool<T, 1>,
    two: Pool<T, 2>,
    three: Pool<T, 3>,
    stencil: TaskHandle<Stencil<T>>,
    product: TaskHandle<Product<T>>,
    update: TaskHandle<ProductUpdate<T>>,
    transpose: TaskHandle<Transpose<T>>,
    dot: TaskHandle<Dot<T>>,
    rank_k: TaskHandle<RankK<T>>,
}

impl<T: Number> Pools<T>
where
    Sum: Operator<T>,
    Max: Operator<T>,
{
    fn new(program: &mut Program, rng: &mut Rng) -> Pools<T> {
        Pools {
            one: Pool::new(program, rng, 300),
            two: Pool::new(program, rng, 20),
            three: Pool::new(program, rng, 8),
            stencil: program.task(Stencil::default()),
            product: program.task(Product::default()),
            update: program.task(ProductUpdate::default()),
            transpose: program.task(Transpose::default()),
            dot: program.task(Dot::default()),
            rank_k: program.task(RankK::default()),
        }
    }

    fn stencil(&self, program: &mut Program, rng: &mut Rng) -> Option<Result<(), ProgramError>> {
        let (input, out) = (self.two.any(rng, false)?, self.two.any(rng, true)?);
        let limit = std::array::from_fn(|d| input.shape[d].min(out.shape[d]));
        let grain = limit.map(|n| n.div_ceil(2));
        let len = lengths(rng, limit, grain);
        let start = starts(rng, limit, len, grain);
        let (mut from, mut span, mut before) = ([0; 2], [0; 2], [0; 2]);
        for d in 0..2 {
            (from[d], span[d], before[d]) = Stencil::<T>::grown(start[d], len[d], input.shape[d]);
        }
        let scalars = Scalars::new().with_u64(before[0]).with_u64(before[1]);
        Some(program.call(self.stencil, (input.array.block(from, span), out.array.block(start, len)), scalars))
    }

    fn product(&self, program: &mut Program, rng: &mut Rng) -> Option<Result<(), ProgramError>> {
        let (a, b, c) = (self.two.any(rng, false)?, self.two.any(rng, false)?, self.two.any(rng, true)?);
        let limit = [a.shape[0].min(c.shape[0]), b.shape[1].min(c.shape[1]), a.shape[1].min(b.shape[0])];
        let grain = limit.map(|n| n.div_ceil(2));
        let [m, n, k] = lengths(rng, limit, grain);
        let [gm, gn, gk] = grain;
        let (a, b, c) = (
            a.array.block(starts(rng, a.shape, [m, k], [gm, gk]), [m, k]),
            b.array.block(starts(rng, b.shape, [k, n], [gk, gn]), [k, n]),
            c.array.block(starts(rng, c.shape, [m, n], [gm, gn]), [m, n]),
        );
        Some(if rng.percent(50) {
            program.call(self.product, (a, b, c), Scalars::new())
        } else {
            program.call(self.update, (a, b, c), Scalars::new())
        })
    }

    fn transpose(&self, program: &mut Program, rng: &mut Rng) -> Option<Result<(), ProgramError>> {
        let (input, out) = (self.two.any(rng, false)?, self.two.any(rng, true)?);
        let limit = [input.shape[0].min(out.shape[1]), input.shape[1].min(out.shape[0])];
        let grain = limit.map(|n| n.div_ceil(2));
        let [m, n] = lengths(rng, limit, grain);
        let from = input.array.block(starts(rng, input.shape, [m, n], grain), [m, n]);
        let to = out.array.block(starts(rng, out.shape, [n, m], [grain[1], grain[0]]), [n, m]);
        Some(program.call(self.transpose, (from, to), Scalars::new()))
    }

    fn dot(&self, program: &mut Program, rng: &mut Rng) -> Option<Result<(), ProgramError>> {
        let (a, b, out) = (self.one.any(rng, false)?, self.one.any(rng, false)?, self.one.any(rng, true)?);
        let limit = [a.shape[0].min(b.shape[0])];
        let grain = limit.map(|n| n.div_ceil(2));
        let len = lengths(rng, limit, grain);
        let mut place = |m: &Member<T, 1>, len| m.array.block(starts(rng, m.shape, len, grain), len);
        Some(program.call(self.dot, (place(a, len), place(b, len), place(out, [1])), Scalars::new()))
    }

    fn rank_k(&self, program: &mut Program, rng: &mut Rng) -> Option<Result<(), ProgramError>> {
        let (a, b, c) = (self.two.any(rng, false)?, self.two.any(rng, false)?, self.two.any(rng, true)?);
        let (mixed, largest) = (self.one.any(rng, true)?, self.one.any(rng, true)?);
        let rows = a.shape[0].min(c.shape[0]).min(mixed.shape[0]).min(largest.shape[0]);
        let limit = [rows, b.shape[1].min(c.shape[1]), a.shape[1].min(b.shape[0])];
        let grain = limit.map(|n| n.div_ceil(2));
        let [m, n, _] = lengths(rng, limit, grain);
        // As many contributions as there may be.
        let k = limit[2];
        let [gm, gn, gk] = grain;
        let blocks = (
            a.array.block(starts(rng, a.shape, [m, k], [gm, gk]), [m, k]),
            b.array.block(starts(rng, b.shape, [k, n], [gk, gn]), [k, n]),
            c.array.block(starts(rng, c.shape, [m, n], [gm, gn]), [m, n]),
            mixed.array.block(starts(rng, mixed.shape, [m], [gm]), [m]),
            largest.array.block(starts(rng, largest.shape, [m], [gm]), [m]),
        );
        Some(program.call(self.rank_k, blocks, Scalars::new()))
    }
}

impl<T: Number> Writer for Pools<T>
where
    Sum: Operator<T>,
    Max: Operator<T>,
{
    fn write(&self, program: &mut Program, rng: &mut Rng) {
        // `None`: no array fits; an error: the blocks overlap. Both leave the program as it was.
        let _ = match rng.below(11) {
            0 => self.one.write(program, rng),
            1 => self.three.write(program, rng),
            2 | 3 => self.two.write(program, rng),
            4 => self.stencil(program, rng),
            5 | 6 => self.product(program, rng),
            7 => self.dot(program, rng),
            8 | 9 => self.rank_k(program, rng),
            _ => self.transpose(program, rng),
        };
    }
}
