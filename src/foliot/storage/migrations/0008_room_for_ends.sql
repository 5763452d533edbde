-- A run is written twice: when it is made and when it ends, often within the same second as all its neighbours. With half of each
-- page free, the second version finds room beside the first and no index learns of it.
ALTER TABLE runs SET (fillfactor = 50);
