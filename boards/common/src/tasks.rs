//! The tasks of a board.

/// Everything of a firmware but the drivers: the entry point, the tasks and their order. Takes the
/// board's [`Hardware`](crate::Hardware) and, if the flock has a task of its own, the type of that: an
/// [`Application`](bellwether::application::Application) with a `Default`.
#[cfg(not(feature = "suite"))]
#[macro_export]
macro_rules! board {
    ($hardware:ty $(, $task:ty)?) => {
        $crate::entry!($hardware);
        $crate::tasks!($hardware $(, $task)?);
    };
}

/// In place of the node: a test of the board's drivers.
#[cfg(feature = "suite")]
#[macro_export]
macro_rules! board {
    ($hardware:ty $(, $task:ty)?) => {
        $crate::entry!($hardware);

        #[$crate::parts::embassy_executor::task(embassy_executor = $crate::parts::embassy_executor)]
        async fn bring_up(
            spawner: $crate::parts::embassy_executor::Spawner,
            boot: $crate::bring_up::Boot,
            mut hardware: $hardware,
            flash: <$hardware as $crate::Hardware>::Flash,
            guard: <$hardware as $crate::Hardware>::Guard,
        ) {
            $crate::Hardware::front(&mut hardware, spawner);
            $crate::suite::run(spawner, boot.cause, hardware, flash, guard).await
        }
    };
}

/// The entry point. Spawns a task `bring_up`.
#[macro_export]
macro_rules! entry {
    ($hardware:ty) => {
        #[$crate::parts::cortex_m_rt::entry]
        fn enter() -> ! {
            $crate::stack::switch(thread)
        }

        extern "C" fn thread() -> ! {
            let (boot, hardware, flash, guard) = $crate::bring_up::begin::<$hardware>();
            $crate::executor::run(|spawner| {
                if let Ok(task) = bring_up(spawner, boot, hardware, flash, guard) {
                    spawner.spawn(task);
                }
            })
        }
    };
}

/// The tasks alone, for a board with an executor of its own: it spawns `bring_up`.
#[macro_export]
macro_rules! tasks {
    ($hardware:ty) => {
        $crate::tasks!($hardware, $crate::parts::bellwether::shell::Sharing);
    };
    ($hardware:ty, $task:ty) => {
        type StoreOf = $crate::parts::bellwether::cells::Store<
            <$hardware as $crate::Hardware>::Flash,
            { <$hardware as $crate::Hardware>::SECTORS },
            { $crate::bring_up::RECORD_BYTES },
        >;

        #[$crate::parts::embassy_executor::task(embassy_executor = $crate::parts::embassy_executor)]
        async fn bring_up(
            spawner: $crate::parts::embassy_executor::Spawner,
            boot: $crate::bring_up::Boot,
            mut hardware: $hardware,
            flash: <$hardware as $crate::Hardware>::Flash,
            guard: <$hardware as $crate::Hardware>::Guard,
        ) {
            use $crate::bring_up::{join, no_room, ration};
            $crate::Hardware::front(&mut hardware, spawner);
            ration(boot).await;
            let joined = async {
                spawner.spawn(store_task(flash).map_err(no_room)?);
                let (runner, member, epoch) =
                    join::<$hardware, $task>(spawner, hardware, guard).await?;
                spawner.spawn(net_task(runner).map_err(no_room)?);
                spawner.spawn(member_task(member, boot, epoch).map_err(no_room)?);
                Ok(())
            };
            if let Err(reason) = joined.await {
                $crate::parts::bellwether::shell::log::mute(reason);
            }
        }

        #[$crate::parts::embassy_executor::task(embassy_executor = $crate::parts::embassy_executor)]
        async fn store_task(flash: <$hardware as $crate::Hardware>::Flash) {
            static STORE: $crate::parts::static_cell::StaticCell<StoreOf> =
                $crate::parts::static_cell::StaticCell::new();
            if let Some(store) = $crate::bring_up::open_store::<$hardware, _>(&STORE, flash).await {
                $crate::bring_up::keep::<$hardware, _>(store).await
            }
        }

        #[$crate::parts::embassy_executor::task(embassy_executor = $crate::parts::embassy_executor)]
        async fn net_task(
            mut runner: $crate::parts::embassy_net::Runner<
                'static,
                <$hardware as $crate::Hardware>::Ethernet,
            >,
        ) {
            runner.run().await
        }

        #[$crate::parts::embassy_executor::task(embassy_executor = $crate::parts::embassy_executor)]
        async fn member_task(
            mut member: $crate::bring_up::Fellow<$hardware, $task>,
            boot: $crate::bring_up::Boot,
            epoch: u32,
        ) {
            member.run(boot.cause, epoch).await
        }
    };
}
