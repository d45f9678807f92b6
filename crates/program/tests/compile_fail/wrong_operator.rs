//! Complex numbers have no order, so there is no largest one.

use multigrain_program::*;

fn params<P: ParamList>() -> Vec<Param> {
    P::default().params()
}

fn main() {
    params::<(Read<Complex32, 1>, Reduce<Complex32, 1, Max>)>();
}
