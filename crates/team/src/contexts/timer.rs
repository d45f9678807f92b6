//! A timer of one thread, whose signal raises a flag. One of the modules of this crate with `unsafe` in it.

use std::sync::atomic::AtomicBool;

thread_local! {
    /// Whether a context's thread is to look closer: raised by its timer; always raised where it has none; never, where it has its processor
    /// to the end.
    pub(crate) static DUE: AtomicBool = const { AtomicBool::new(false) };
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use super::DUE;
    use std::io;
    use std::mem::MaybeUninit;
    use std::sync::OnceLock;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    /// See the module.
    #[derive(Debug)]
    pub(crate) struct Timer {
        timer: libc::timer_t,
    }

    /// The signal: one of those that the system leaves to programs.
    fn signal() -> libc::c_int {
        libc::SIGRTMIN() + 1
    }

    /// What the signal does: only a store, which may interrupt anything.
    extern "C" fn raise(_: libc::c_int) {
        DUE.with(|due| due.store(true, Ordering::Relaxed));
    }

    /// Installs the handler, once for the process.
    fn installed() -> io::Result<()> {
        static DONE: OnceLock<Result<(), i32>> = OnceLock::new();
        let install = || {
            let failed =
                |code: libc::c_int| (code != 0).then(|| io::Error::last_os_error().raw_os_error().unwrap_or(0));
            let mut before = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: asks only; the structure is as large as the call takes it to be, and zeros are one.
            let (code, before) =
                unsafe { (libc::sigaction(signal(), std::ptr::null(), before.as_mut_ptr()), before.assume_init()) };
            if let Some(error) = failed(code) {
                return Err(error);
            }
            if ![libc::SIG_DFL, libc::SIG_IGN].contains(&before.sa_sigaction) {
                return Err(libc::EBUSY);
            }
            // SAFETY: zeros are a structure without flags, blocked signals, or handler.
            let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
            action.sa_sigaction = raise as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            // SAFETY: `raise` has the form of a handler, and does nothing that one must not: the flag needs no initialisation.
            match failed(unsafe { libc::sigaction(signal(), &raw const action, std::ptr::null_mut()) }) {
                Some(error) => Err(error),
                None => Ok(()),
            }
        };
        DONE.get_or_init(install).map_err(io::Error::from_raw_os_error)
    }

    impl Timer {
        /// A timer of the calling thread, which is not set.
        ///
        /// # Errors
        /// The system has no more timers, or somebody else uses the signal.
        pub(crate) fn new() -> io::Result<Timer> {
            installed()?;
            // SAFETY: the set is made by the first call; a thread may unblock a signal of its own.
            unsafe {
                let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
                libc::sigemptyset(set.as_mut_ptr());
                libc::sigaddset(set.as_mut_ptr(), signal());
                libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
            }
            // SAFETY: zeros are an event; what matters is filled in below.
            let mut event = unsafe { MaybeUninit::<libc::sigevent>::zeroed().assume_init() };
            event.sigev_signo = signal();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_notify_thread_id = crate::bind::thread().cast_signed();
            let mut timer = MaybeUninit::<libc::timer_t>::zeroed();
            // SAFETY: both structures are whole; the call writes the timer where it succeeds.
            match unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, timer.as_mut_ptr()) } {
                // SAFETY: written.
                0 => Ok(Timer { timer: unsafe { timer.assume_init() } }),
                _ => Err(io::Error::last_os_error()),
            }
        }

        /// The flag is raised once, after this time, whatever was set before.
        pub(crate) fn set(&self, after: Duration) {
            let it_value = libc::timespec {
                tv_sec: libc::time_t::try_from(after.as_secs()).unwrap_or(libc::time_t::MAX),
                // Zero would mean never.
                tv_nsec: after.subsec_nanos().max(u32::from(after.is_zero())).into(),
            };
            let it_interval = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            let times = libc::itimerspec { it_interval, it_value };
            // SAFETY: the timer is there; its value is not asked for.
            unsafe { libc::timer_settime(self.timer, 0, &raw const times, std::ptr::null_mut()) };
        }
    }

    impl Drop for Timer {
        fn drop(&mut self) {
            // SAFETY: the timer is there. A signal of it that is under way raises a flag of the thread to which it comes.
            unsafe { libc::timer_delete(self.timer) };
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    use std::io;
    use std::time::Duration;

    /// No thread has timers here.
    #[derive(Debug)]
    pub(crate) struct Timer(std::convert::Infallible);

    impl Timer {
        pub(crate) fn new() -> io::Result<Timer> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn set(&self, _: Duration) {
            match self.0 {}
        }
    }
}

pub(super) use system::Timer;
