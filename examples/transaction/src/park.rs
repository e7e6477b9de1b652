//! Stops a transaction at a step, so that the process can be killed exactly there. Of this example only: a service has no
//! such thing.
//!
//! ```text
//! TRANSACTION_PARK=half-sent        the broker has the half message, the database knows nothing
//!                  in-transaction   the order is written and not committed
//!                  committed        order and state are committed, the broker has not been told
//!                  check            the broker has asked, the answer is known and not sent
//! ```

/// A step of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// `half-sent`
    HalfSent,
    /// `in-transaction`
    InTransaction,
    /// `committed`
    Committed,
    /// `check`
    Check,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::HalfSent => "half-sent",
            Self::InTransaction => "in-transaction",
            Self::Committed => "committed",
            Self::Check => "check",
        }
    }
}

/// Goes no further if `TRANSACTION_PARK` names this step: says so on standard output and waits for the end of the process.
pub async fn at(step: Step, transaction: &str) {
    if std::env::var("TRANSACTION_PARK").is_ok_and(|name| name == step.name()) {
        println!("parked at {}: {transaction}", step.name());
        std::future::pending::<()>().await;
    }
}
