//! The database: orders, how their transactions ended, and what was delivered.
//!
//! ```text
//! begin ─▶ book ─▶ commit(id, state) ─▶ orders + transactions, one commit      delivered ─▶ deliveries
//!                  outcome(id) · give_up(id) ◀─▶ transactions                   compared  ◀─ orders + deliveries
//! ```

use std::path::Path;
use std::time::Duration;

use bindery::error::BoxError;
use bindery::transaction::{LocalState, TxStore};
use serde::Serialize;
use sqlx::sqlite::{
    Sqlite, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteSynchronous,
};
use sqlx::{Row, Transaction};

use crate::orders::Order;

/// A delivery has no foreign key: it must be possible to see one without its order.
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS orders (
    id INTEGER PRIMARY KEY, item TEXT NOT NULL, quantity INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS transactions (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, ended INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (
    order_id INTEGER PRIMARY KEY, item TEXT NOT NULL, quantity INTEGER NOT NULL, times INTEGER NOT NULL);
";

/// How long a writer waits for another one.
const BUSY: Duration = Duration::from_secs(5);
/// How long outcomes are kept. The broker asks for `transactionCheckMax` times `transactionCheckInterval`, and its host may
/// have been down.
const KEEP: Duration = Duration::from_secs(24 * 3600);
const EXPIRE_EVERY: Duration = Duration::from_secs(3600);

/// The database. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Store {
    pool: SqlitePool,
}

/// What one order's number has seen.
#[derive(Debug, Serialize)]
pub struct Compared {
    id: i64,
    booked: bool,
    /// 0: never.
    delivered: i64,
}

impl Store {
    /// Opens the database; makes it, its folder and its tables if they are absent.
    pub async fn open(path: &Path) -> Result<Self, BoxError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // With WAL, `Normal` could forget a commit at power loss that the broker has been told of.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY);
        let pool = SqlitePool::connect_with(options).await?;
        sqlx::raw_sql(SCHEMA).execute(&pool).await?;
        Ok(Self { pool })
    }

    /// Makes sure that a transaction that has not ended never commits; how it ended, which may be a commit that came first.
    pub async fn give_up(&self, id: &str) -> Result<LocalState, BoxError> {
        sqlx::query(
            "INSERT OR IGNORE INTO transactions (id, state, ended) VALUES (?, ?, unixepoch())",
        )
        .bind(id)
        .bind(word(LocalState::Rollback))
        .execute(&self.pool)
        .await?;
        Ok(self.outcome(id).await?.unwrap_or_default())
    }

    /// Notes that an order was delivered. Brokers may deliver twice; the second time is counted.
    pub async fn delivered(&self, order: &Order) -> Result<(), sqlx::Error> {
        sqlx::query(
            "INSERT INTO deliveries (order_id, item, quantity, times) VALUES (?, ?, ?, 1)
             ON CONFLICT (order_id) DO UPDATE SET times = times + 1",
        )
        .bind(order.id)
        .bind(&order.item)
        .bind(order.quantity)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Every order that is booked or delivered.
    pub async fn compared(&self) -> Result<Vec<Compared>, sqlx::Error> {
        let rows = sqlx::query(
            "SELECT coalesce(o.id, d.order_id) AS id, o.id IS NOT NULL AS booked, coalesce(d.times, 0) AS delivered
             FROM orders o FULL JOIN deliveries d ON d.order_id = o.id ORDER BY 1",
        )
        .fetch_all(&self.pool)
        .await?;
        let compared = |row: &sqlx::sqlite::SqliteRow| {
            Ok(Compared {
                id: row.try_get("id")?,
                booked: row.try_get("booked")?,
                delivered: row.try_get("delivered")?,
            })
        };
        rows.iter().map(compared).collect()
    }
}

/// Books an order within a local transaction; whether it was booked, and not already there.
pub async fn book(
    work: &mut Transaction<'static, Sqlite>,
    order: &Order,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query("INSERT OR IGNORE INTO orders (id, item, quantity) VALUES (?, ?, ?)")
        .bind(order.id)
        .bind(&order.item)
        .bind(order.quantity)
        .execute(&mut **work)
        .await?;
    Ok(done.rows_affected() == 1)
}

impl TxStore for Store {
    type Work = Transaction<'static, Sqlite>;

    async fn begin(&self) -> Result<Self::Work, BoxError> {
        // Immediate: one that begins as a reader cannot wait for its turn to write, it fails.
        Ok(self.pool.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// Fails, with nothing written, if the transaction was given up meanwhile: its id is taken.
    async fn commit(
        &self,
        mut work: Self::Work,
        id: &str,
        state: LocalState,
    ) -> Result<(), BoxError> {
        sqlx::query("INSERT INTO transactions (id, state, ended) VALUES (?, ?, unixepoch())")
            .bind(id)
            .bind(word(state))
            .execute(&mut *work)
            .await?;
        work.commit().await?;
        Ok(())
    }

    async fn outcome(&self, id: &str) -> Result<Option<LocalState>, BoxError> {
        let row = sqlx::query("SELECT state FROM transactions WHERE id = ?")
            .bind(id)
            .fetch_optional(&self.pool)
            .await?;
        let Some(row) = row else { return Ok(None) };
        match row.try_get("state")? {
            "COMMIT" => Ok(Some(LocalState::Commit)),
            "ROLLBACK" => Ok(Some(LocalState::Rollback)),
            other => Err(format!("the transaction {id} has the state `{other}`").into()),
        }
    }

    async fn expire(&self, age: Duration) -> Result<u64, BoxError> {
        let seconds = i64::try_from(age.as_secs())?;
        let done = sqlx::query("DELETE FROM transactions WHERE ended <= unixepoch() - ?")
            .bind(seconds)
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected())
    }
}

fn word(state: LocalState) -> &'static str {
    match state {
        LocalState::Commit => "COMMIT",
        LocalState::Rollback => "ROLLBACK",
        LocalState::Unknown => "UNKNOWN",
    }
}

/// Keeps the table of outcomes small, as long as the application runs.
pub async fn expire_old_outcomes(store: Store) {
    let mut ticks = tokio::time::interval(EXPIRE_EVERY);
    loop {
        ticks.tick().await;
        if let Err(error) = store.expire(KEEP).await {
            tracing::warn!(%error, "old outcomes are kept until the next try");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn order(id: i64) -> Order {
        Order {
            id,
            item: "tea".to_owned(),
            quantity: 1,
        }
    }

    async fn opened() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("orders.db")).await.unwrap();
        (folder, store)
    }

    #[tokio::test]
    async fn a_transaction_that_was_given_up_cannot_commit_any_more() {
        let (_folder, store) = opened().await;
        assert_eq!(store.give_up("late").await.unwrap(), LocalState::Rollback);
        let mut work = store.begin().await.unwrap();
        assert!(book(&mut work, &order(1)).await.unwrap());
        let commit = store.commit(work, "late", LocalState::Commit).await;
        assert!(commit.is_err());
        assert!(store.compared().await.unwrap().is_empty());
        let outcome = store.outcome("late").await.unwrap();
        assert_eq!(outcome, Some(LocalState::Rollback));
    }

    #[tokio::test]
    async fn a_commit_that_came_first_is_not_given_up_and_its_number_is_taken() {
        let (_folder, store) = opened().await;
        let mut work = store.begin().await.unwrap();
        assert!(book(&mut work, &order(1)).await.unwrap());
        store.commit(work, "a", LocalState::Commit).await.unwrap();
        assert_eq!(store.give_up("a").await.unwrap(), LocalState::Commit);
        let mut again = store.begin().await.unwrap();
        assert!(!book(&mut again, &order(1)).await.unwrap());
        drop(again);
        assert_eq!(store.expire(KEEP).await.unwrap(), 0);
        assert_eq!(store.expire(Duration::ZERO).await.unwrap(), 1);
        assert_eq!(store.outcome("a").await.unwrap(), None);
    }
}
