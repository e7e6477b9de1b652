//! Kinds of producers in the type system: what code relies on, checked against the configuration when the application starts.
//!
//! ```text
//! Output<T>            every send; what the configuration does not offer fails when it is used
//! Output<T, Orderly>   send, send_all                          producer-type: Orderly, or no start
//! Output<T, Trans>     send_in_transaction, transaction        producer-type: Trans, or no start
//! ```

use crate::config::ProducerType;

/// Whatever the configuration makes of the output.
#[derive(Debug, Clone, Copy)]
pub enum Any {}

/// An output whose messages of one key stay in order (`producer-type: Orderly`).
#[derive(Debug, Clone, Copy)]
pub enum Orderly {}

/// A transactional output (`producer-type: Trans`).
#[derive(Debug, Clone, Copy)]
pub enum Trans {}

/// A kind of producer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind of output",
    label = "the second parameter of `Output` is `Orderly` or `Trans`, or is left out"
)]
pub trait ProducerKind: sealed::Sealed {
    /// What the configuration has to say; `None`: anything.
    const REQUIRED: Option<ProducerType>;
}

/// A kind whose messages are sent at once.
#[diagnostic::on_unimplemented(
    message = "an output of kind `{Self}` has no plain sends",
    note = "an `Output<_, Trans>` sends with `send_in_transaction` or `transaction`"
)]
pub trait Sends: ProducerKind {}

/// A kind whose messages may depend on a local transaction.
#[diagnostic::on_unimplemented(
    message = "an output of kind `{Self}` has no transactions",
    note = "declare it as `Output<_, Trans>`, with `producer-type: Trans` in the configuration"
)]
pub trait Transacts: ProducerKind {}

impl ProducerKind for Any {
    const REQUIRED: Option<ProducerType> = None;
}

impl ProducerKind for Orderly {
    const REQUIRED: Option<ProducerType> = Some(ProducerType::Orderly);
}

impl ProducerKind for Trans {
    const REQUIRED: Option<ProducerType> = Some(ProducerType::Trans);
}

impl Sends for Any {}
impl Sends for Orderly {}
impl Transacts for Any {}
impl Transacts for Trans {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Any {}
    impl Sealed for super::Orderly {}
    impl Sealed for super::Trans {}
}
