//! Fork and join over a range of workers, as a binary tree: whoever holds a range of posts hands the upper half to
//! the first worker of that half and goes on with the lower, so that posting, waking and joining take logarithmic
//! time. One of the two modules of this crate with `unsafe` in it.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::mailbox::{Mailbox, Post};
use crate::panic::{WorkerPanic, panic_message};
use crate::place::{Place, Placed};
use crate::spin::SpinLimit;
use crate::sync::{Mutex, lock};

/// The team as a fork sees it.
#[derive(Clone, Copy)]
pub(crate) struct Crew<'a> {
    pub(crate) mailboxes: &'a [Mailbox],
    pub(crate) spin: SpinLimit,
    /// The team's name in [`Place`].
    pub(crate) team: usize,
}

/// Calls the job for each of `members`, each on its own worker, the caller being the first. The job is told the worker,
/// or the number of the group.
///
/// # Safety
/// The calling thread leads every worker of `members`, and is its first.
pub(crate) unsafe fn fork<F: Fn(usize) + Sync>(
    crew: Crew<'_>,
    members: Members<'_>,
    job: &F,
) -> Result<(), WorkerPanic> {
    let panic = Mutex::new(None);
    // SAFETY: the caller leads all of the members. Job, panic and groups are borrowed for the length of this call, and
    // `run` returns only when no part of the fork uses them any more.
    unsafe { run(crew, post(&members, job, &panic)) };
    first_panic(panic)
}

/// As [`fork`], but the calling thread, the first of `workers`, does `own` instead of the job, which no other thread ever
/// sees. A panic of `own` goes on when the others are done.
///
/// # Safety
/// As [`fork`].
pub(crate) unsafe fn fork_beside<F: Fn(usize) + Sync, R>(
    crew: Crew<'_>,
    workers: Range<usize>,
    job: &F,
    own: impl FnOnce() -> R,
) -> (R, Result<(), WorkerPanic>) {
    let panic = Mutex::new(None);
    // SAFETY: as in `fork`.
    match unsafe { beside(crew, post(&Members::Each(workers), job, &panic), own) } {
        Ok(result) => (result, first_panic(panic)),
        Err(payload) => resume_unwind(payload),
    }
}

/// The post of a whole fork.
fn post<F: Fn(usize) + Sync>(members: &Members<'_>, job: &F, panic: &Mutex<Option<WorkerPanic>>) -> Post {
    let (base, groups, end) = match members {
        Members::Each(workers) => (workers.start, std::ptr::null(), workers.len()),
        Members::Groups(groups) => (0, groups.as_ptr(), groups.len()),
    };
    Post {
        call: Some(call::<F>),
        job: std::ptr::from_ref(job).cast(),
        panic: std::ptr::from_ref(panic),
        groups,
        base: base as u32,
        first: 0,
        end: end as u32,
    }
}

fn first_panic(panic: Mutex<Option<WorkerPanic>>) -> Result<(), WorkerPanic> {
    panic.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).map_or(Ok(()), Err)
}

/// Who takes part in a fork.
#[derive(Clone, Debug)]
pub(crate) enum Members<'a> {
    /// Each worker of a range, leading only itself.
    Each(Range<usize>),
    /// The first worker of each of these disjoint ranges, leading the range.
    Groups(&'a [Range<usize>]),
}

/// # Safety
/// `job` points to a living `F`.
unsafe fn call<F: Fn(usize)>(job: *const (), member: usize) {
    // SAFETY: by the caller; made from an `F` in `fork`.
    let job = unsafe { &*job.cast::<F>() };
    job(member);
}

/// What a worker's thread does: posts, one after the other, until it is told to stop.
///
/// # Safety
/// The calling thread is the only one that acts as `worker` for posts to its mailbox.
pub(crate) unsafe fn serve(crew: Crew<'_>, worker: usize) {
    let mailbox = &crew.mailboxes[worker];
    for number in 1.. {
        // SAFETY: this thread is the worker, and `done` is called below for every post before the next.
        let post = unsafe { mailbox.receive(number, crew.spin) };
        if post.call.is_some() {
            // SAFETY: the leader handed over the workers of this part with the post, and waits for `done` before it
            // returns from `run`, so the pointers are valid until then.
            unsafe { run(crew, post) };
        }
        mailbox.done();
        if post.call.is_none() {
            return;
        }
    }
}

/// Executes a part of a fork: hands out the upper halves, does the first position itself, waits for the others. When
/// it returns, no other thread uses what the post points to.
///
/// # Safety
/// The calling thread leads every worker of the part, is its first, and the post's pointers are valid.
unsafe fn run(crew: Crew<'_>, post: Post) {
    // SAFETY: by the caller; that the pointers are valid is what the call asks for as well.
    let outcome = unsafe {
        beside(crew, post, || {
            if let Some(call) = post.call {
                call(post.job, (post.base + post.first) as usize);
            }
        })
    };
    if let Err(payload) = outcome {
        // SAFETY: as above.
        report(unsafe { &*post.panic }, members(&post).start, payload);
    }
}

/// Hands out the upper halves of a part of a fork, does `own` as the first position, waits for the others.
///
/// # Safety
/// As [`run`].
unsafe fn beside<R>(crew: Crew<'_>, post: Post, own: impl FnOnce() -> R) -> std::thread::Result<R> {
    for part in upper_halves(post) {
        // SAFETY: the part's workers are led by this thread, which posts to each once and waits below.
        unsafe { crew.mailboxes[members(&part).start].post(part) };
    }
    let led = members(&post);
    let placed = Placed::new(Place { team: crew.team, worker: led.start, lead_end: led.end });
    let outcome = catch_unwind(AssertUnwindSafe(own));
    drop(placed);
    for part in upper_halves(post) {
        crew.mailboxes[members(&part).start].await_done(crew.spin);
    }
    outcome
}

/// The parts that a worker hands out, the largest first.
#[inline]
fn upper_halves(post: Post) -> impl Iterator<Item = Post> {
    let mut rest = post;
    std::iter::from_fn(move || {
        let half = (rest.end - rest.first) / 2;
        if half == 0 {
            return None;
        }
        let part = Post { first: rest.end - half, ..rest };
        rest.end -= half;
        Some(part)
    })
}

/// The workers that the first position of a part leads.
#[inline]
fn members(part: &Post) -> Range<usize> {
    if part.groups.is_null() {
        let worker = (part.base + part.first) as usize;
        worker..worker + 1
    } else {
        // SAFETY: not null, so it points to the slice of at least `end` groups that the caller of `fork` holds
        // borrowed until every part is done.
        unsafe { (*part.groups.add(part.first as usize)).clone() }
    }
}

#[cold]
#[inline(never)]
fn report(first: &Mutex<Option<WorkerPanic>>, worker: usize, payload: Box<dyn Any + Send>) {
    let message = panic_message(payload);
    lock(first).get_or_insert(WorkerPanic { worker, message });
}
