//! What brokers ask, and what is asked about them: registration, signs of life, members, write permission.
//!
//! ```text
//! Processor::answer ─▶ header, body (checked and parsed before the lock) ─▶ RouteTable ─▶ Reply
//! ```
use bindery_protocol::{
    bodies::{self, DataVersion, RegisterBrokerBody},
    frame::{Frame, Reply},
    headers::{
        AddWritePermReply, BrokerHeartbeatHeader, DataVersionHeader, DataVersionReply,
        MemberGroupHeader, RegisterBrokerHeader, RegisterBrokerReply, UnregisterBrokerHeader,
        WipeWritePermReply, WritePermHeader,
    },
};
use bindery_remoting::Connection;

use super::{
    kv::ORDER_TOPIC_CONFIG,
    processor::{Outcome, Processor, json},
    refusal::Refusal,
    route::{Member, Registration, WritePermission},
};

/// A checksum of 0 was not made; made ones lack the top bit.
const CHECKSUM_MASK: u32 = 0x7FFF_FFFF;

impl Processor {
    pub(super) fn register(
        &self,
        connection: &Connection,
        frame: &Frame,
    ) -> Result<Outcome, Refusal> {
        let header: RegisterBrokerHeader<'_> = frame.header()?;
        let checksum = u32::try_from(header.body_crc32)
            .ok()
            .filter(|checksum| *checksum != 0);
        if checksum.is_some_and(|checksum| crc32fast::hash(&frame.body) & CHECKSUM_MASK != checksum)
        {
            return Err(Refusal::Checksum);
        }
        // Parsed before the lock is taken: the table of 10,000 topics takes its time.
        let body = RegisterBrokerBody::read(&frame.body, header.compressed, frame.head.version)?;
        let mut state = self.state();
        let delete_missing = state.config.delete_topic_with_registration;
        let registered = state.routes.register(&Registration {
            header: &header,
            table: body.topic_config_serialize_wrapper,
            connection,
            delete_missing,
            now: self.clock.now_millis(),
        })?;
        if registered
            .expires
            .is_some_and(|expires| expires < state.next_look)
        {
            self.sooner.notify_one();
        }
        let orders = if state.config.return_order_topic_config {
            state.kv.namespace(ORDER_TOPIC_CONFIG)
        } else {
            None
        };
        drop(state);
        let (ha_server_addr, master_addr) = registered.master.unzip();
        let answer = RegisterBrokerReply {
            ha_server_addr: ha_server_addr.map(Into::into),
            master_addr: master_addr.map(Into::into),
        };
        let reply = Reply::ok().with(&answer);
        Ok(match orders {
            Some(orders) => reply.body(bodies::to_vec(&orders)?).into(),
            None => reply.into(),
        })
    }

    pub(super) fn unregister(&self, frame: &Frame) -> Result<Outcome, Refusal> {
        let header: UnregisterBrokerHeader<'_> = frame.header()?;
        let member = Member::new(&header.cluster_name, &header.broker_addr);
        self.state().routes.unregister(&member, &header.broker_name);
        Ok(Reply::ok().into())
    }

    pub(super) fn heartbeat(&self, frame: &Frame) -> Result<Outcome, Refusal> {
        let header: BrokerHeartbeatHeader<'_> = frame.header()?;
        let member = Member::new(&header.cluster_name, &header.broker_addr);
        self.state().routes.touch(&member, self.clock.now_millis());
        Ok(Reply::ok().into())
    }

    pub(super) fn data_version(&self, frame: &Frame) -> Result<Outcome, Refusal> {
        let header: DataVersionHeader<'_> = frame.header()?;
        let theirs: DataVersion = bodies::from_slice(&frame.body)?;
        let member = Member::new(&header.cluster_name, &header.broker_addr);
        let mut state = self.state();
        state.routes.touch(&member, self.clock.now_millis());
        let ours = state.routes.data_version(&member);
        drop(state);
        let reply = Reply::ok().with(&DataVersionReply {
            changed: ours != Some(theirs),
        });
        Ok(match ours {
            Some(ours) => reply.body(bodies::to_vec(&ours)?).into(),
            None => reply.into(),
        })
    }

    pub(super) fn member_group(&self, frame: &Frame) -> Result<Outcome, Refusal> {
        let header: MemberGroupHeader<'_> = frame.header()?;
        json(
            &self
                .state()
                .routes
                .member_group(&header.cluster_name, &header.broker_name),
        )
    }

    pub(super) fn turn_write(
        &self,
        frame: &Frame,
        permission: WritePermission,
    ) -> Result<Outcome, Refusal> {
        let header: WritePermHeader<'_> = frame.header()?;
        let count = self
            .state()
            .routes
            .turn_write(&header.broker_name, permission);
        tracing::info!(broker = %header.broker_name, ?permission, topics = count, "write permission turned");
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        Ok(match permission {
            WritePermission::Wipe => Reply::ok().with(&WipeWritePermReply {
                wipe_topic_count: count,
            }),
            WritePermission::Add => Reply::ok().with(&AddWritePermReply {
                add_topic_count: count,
            }),
        }
        .into())
    }
}
