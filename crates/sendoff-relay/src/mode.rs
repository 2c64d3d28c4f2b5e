//! What the relay's handle asks of a target.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What the relay's handle asks of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    #[default]
    Run,
    /// Nothing more is claimed.
    Pause,
    /// Nothing more is claimed, and the workers end when all is settled.
    Stop,
}

/// The mode, and who waits for another. Those are woken in the order in which they came, so that a simulation can be repeated; tokio's `watch`
/// leaves that to chance.
#[derive(Debug, Default)]
pub(crate) struct ModeSwitch {
    mode: Mutex<Mode>,
    changed: Notify,
}

impl ModeSwitch {
    fn lock(&self) -> MutexGuard<'_, Mode> {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self) -> Mode {
        *self.lock()
    }

    pub(crate) fn set(&self, mode: Mode) {
        *self.lock() = mode;
        self.changed.notify_waiters();
    }

    /// Changes it if it is `from`; what it is then.
    pub(crate) fn change(&self, from: Mode, to: Mode) -> Mode {
        let mut mode = self.lock();
        if *mode == from {
            *mode = to;
            self.changed.notify_waiters();
        }
        *mode
    }

    /// Waits for a mode like this.
    pub(crate) async fn wait_for(&self, is_wanted: impl Fn(Mode) -> bool) -> Mode {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let mode = self.get();
            if is_wanted(mode) {
                return mode;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_is_woken_and_a_stopped_target_stays_stopped() {
        let switch = ModeSwitch::default();
        assert_eq!(switch.change(Mode::Run, Mode::Pause), Mode::Pause);
        let both =
            tokio::join!(switch.wait_for(|mode| mode != Mode::Pause), async { switch.set(Mode::Stop) });
        assert_eq!(both.0, Mode::Stop);
        assert_eq!(switch.change(Mode::Pause, Mode::Run), Mode::Stop);
    }
}
