//! Sums of lists of different lengths, which lie one after the other: `ragged VALUES.npy BEGINS.npy SUMS.npy`. List i is from
//! BEGINS[i] to BEGINS[i + 1], uint64; values are float32, sums float64.
use multigrain::prelude::*;
use std::path::PathBuf;

/// The task knows where the lists begin, since the array of values does not.
struct Sums {
    begins: Vec<u64>,
}

impl Sums {
    /// Where the lists of a call begin and the last one ends. Which list is the call's first is its scalar.
    fn begins(&self, scalars: &Scalars, lists: u64) -> &[u64] {
        let first = scalars.u64(0) as usize;
        &self.begins[first..=first + lists as usize]
    }
}

impl Task for Sums {
    type Params = (Read<f32, 1>, Write<f64, 1>);

    fn name(&self) -> &'static str {
        "sums"
    }

    /// Lists that are cut otherwise are another task to --resume.
    fn version(&self) -> u64 {
        self.begins.iter().fold(0, |hash: u64, begin| (hash ^ begin).wrapping_mul(0x100_0000_01b3))
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["values", "sums"]
    }

    fn work(&self, call: &CallShape) -> Work {
        let [values, lists] = [0, 1].map(|i| call.shapes[i].elements() as f64);
        Work { flops: values, bytes: 4.0 * values + 8.0 * lists }
    }

    /// What the planner chooses: about how many values a block has.
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        vec![Tunable { name: "values", extent: call.shapes[0].elements(), multiple: 1 }]
    }

    /// Blocks of whole lists: as many as have the values that were chosen, but at least one.
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let [values, lists] = [0, 1].map(|i| call.shapes[i].elements());
        let (begins, first) = (self.begins(&call.scalars, lists), call.scalars.u64(0));
        let most = tunables.get("values", values);
        let (mut calls, mut from) = (Vec::new(), 0);
        while from < lists as usize {
            let to = from + begins[from + 1..].partition_point(|end| end - begins[from] <= most).max(1);
            let block = Region::new(&[begins[from] - begins[0]], &[begins[to] - begins[from]]);
            let sums = Region::new(&[from as u64], &[(to - from) as u64]);
            calls.push(SubCall::itself([(0, block), (1, sums)], &Scalars::new().with_u64(first + from as u64)));
            from = to;
        }
        calls
    }

    fn leaf(&self, (values, mut sums): (View<'_, f32, 1>, ViewMut<'_, f64, 1>), context: &mut LeafContext<'_>) {
        let begins = self.begins(context.scalars, sums.len(0) as u64);
        for (sum, list) in sums.row_mut(&[]).iter_mut().zip(begins.windows(2)) {
            let [from, to] = [0, 1].map(|i| (list[i] - begins[0]) as usize);
            *sum = values.row(&[])[from..to].iter().map(|&x| f64::from(x)).sum();
        }
    }
}

fn main() -> Result<(), Error> {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [values, begins, sums] = &files[..] else {
        return Err(Error::Request("give three files: values, begins, sums".into()));
    };
    let runtime = Runtime::with_memory("4MiB")?;
    let given = runtime.npy::<f32, 1>(values)?.shape()[0];
    let begins = runtime.values(&runtime.npy::<u64, 1>(begins)?)?;
    // What a leaf relies on: an empty list would be a block without elements.
    if begins.first() != Some(&0) || begins.last() != Some(&given) || !begins.is_sorted_by(|a, b| a < b) {
        return Err(Error::Request(format!("begins must rise from 0 to {given}, the number of values")));
    }
    let mut program = Program::new();
    let from = program.array::<f32, 1>("values", [given], Role::Input)?;
    let to = program.array::<f64, 1>("sums", [begins.len() as u64 - 1], Role::Output)?;
    let task = program.task(Sums { begins });
    program.call(task, (from.all(), to.all()), Scalars::new().with_u64(0))?;
    let job = Job::new("ragged", program).with_source(from, Source::Npy(values.clone()));
    runtime.run(&job.with_sink(to, Sink::Npy(sums.clone())), Settings::default())?;
    Ok(())
}
