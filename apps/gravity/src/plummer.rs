//! A seeded Plummer sphere after Aarseth, Henon and Wielen, "A comparison of numerical methods for the study of star
//! cluster dynamics", Astronomy and Astrophysics 37 (1974), 183-187, in their units: G = 1, the masses add up to 1, the
//! energy of the sphere is -1/4. Only correctly rounded operations are used, so a seed gives the same particles
//! everywhere.

use crate::particles::Particles;
use multigrain::generate;

/// Of the mass, the part that lies inside the sphere at which the model is cut off: beyond it, at 38.7 scale lengths,
/// lies the last thousandth.
const MASS_INSIDE: f64 = 0.999;

/// Numbers uniform in [0, 1) in a row.
struct Uniform {
    seed: u64,
    next: u64,
}

impl Uniform {
    fn next(&mut self) -> f64 {
        self.next += 1;
        0.5 * (generate::f64_at(self.seed, self.next - 1) + 1.0)
    }

    /// A direction: a point of the ball by rejection (von Neumann 1951), scaled to length 1.
    fn direction(&mut self) -> [f64; 3] {
        loop {
            let p: [f64; 3] = std::array::from_fn(|_| 2.0 * self.next() - 1.0);
            let r2 = p[0] * p[0] + p[1] * p[1] + p[2] * p[2];
            if r2 <= 1.0 && r2 > 1e-6 {
                return p.map(|c| c / r2.sqrt());
            }
        }
    }
}

/// The cube root of a number in (0, 1], by Newton's iteration from above, which falls until it is as near as rounding
/// lets it come.
fn cube_root(m: f64) -> f64 {
    let mut root = 1.0;
    loop {
        let next = root - (root - m / (root * root)) / 3.0;
        if next >= root {
            return root;
        }
        root = next;
    }
}

/// `n` particles of equal mass; the centre of mass rests at the origin.
pub fn plummer(n: usize, seed: u64) -> Particles {
    let mut uniform = Uniform { seed, next: 0 };
    let scale = 3.0 * std::f64::consts::PI / 16.0;
    let mut rows: Vec<[f64; 7]> = Vec::with_capacity(n);
    for _ in 0..n {
        // m = (1 + 1/r^2)^(-3/2) is the mass inside of radius r.
        let m = (MASS_INSIDE * (1.0 - uniform.next())).max(1e-12);
        let inverse = 1.0 / cube_root(m);
        let r = 1.0 / (inverse * inverse - 1.0).sqrt();
        let place = uniform.direction();
        // q is the speed over that of escape, of density q^2 (1 - q^2)^(7/2), which is below 0.1.
        let q = loop {
            let (q, height) = (uniform.next(), 0.1 * uniform.next());
            let rest = 1.0 - q * q;
            if height < q * q * rest * rest * rest * rest.sqrt() {
                break q;
            }
        };
        let speed = q * (2.0 / (1.0 + r * r).sqrt()).sqrt() / scale.sqrt();
        let way = uniform.direction();
        let r = r * scale;
        let mass = 1.0 / n as f64;
        rows.push([mass, r * place[0], r * place[1], r * place[2], speed * way[0], speed * way[1], speed * way[2]]);
    }
    for column in 1..7 {
        let mean = rows.iter().map(|row| row[column]).sum::<f64>() / n as f64;
        rows.iter_mut().for_each(|row| row[column] -= mean);
    }
    Particles { rows }
}
