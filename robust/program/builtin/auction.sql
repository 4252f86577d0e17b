-- The auction of Vandevoort, Ketsman, Koch and Neven (EDBT 2023, Figure 1).

FindBids [FB] (:B, :T):
  UPDATE Buyer SET calls = calls + 1 WHERE id = :B;
  SELECT bid FROM Bids WHERE bid >= :T;
COMMIT;

PlaceBid [PB] (:B, :V):
  UPDATE Buyer SET calls = calls + 1 WHERE id = :B;
  SELECT bid INTO :C FROM Bids WHERE buyerId = :B;
  IF :C < :V THEN
    UPDATE Bids SET bid = :V WHERE buyerId = :B;
  END IF;
  :logId = uniqueLogId();
  INSERT INTO Log VALUES (:logId, :B, :V);
COMMIT;
