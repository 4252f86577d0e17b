-- SmallBank (Alomari, Cahill, Fekete and Röhm, ICDE 2008), as Vandevoort, Ketsman, Koch and Neven (EDBT 2023) model it: a
-- balance is read and changed in one statement.

Balance [Bal] (:N1):
  SELECT CustomerId INTO :x1 FROM Account WHERE Name = :N1;
  SELECT Balance INTO :a FROM Savings WHERE CustomerId = :x1;
  SELECT Balance INTO :b FROM Checking WHERE CustomerId = :x1;
COMMIT;

-- Moves all that the first customer has to the second's checking account.
Amalgamate [Am] (:N1, :N2):
  SELECT CustomerId INTO :x1 FROM Account WHERE Name = :N1;
  SELECT CustomerId INTO :x2 FROM Account WHERE Name = :N2;
  UPDATE Savings SET Balance = 0 WHERE CustomerId = :x1 RETURNING old.Balance INTO :a;
  UPDATE Checking SET Balance = 0 WHERE CustomerId = :x1 RETURNING old.Balance INTO :b;
  UPDATE Checking SET Balance = Balance + :a + :b WHERE CustomerId = :x2;
COMMIT;

DepositChecking [DC] (:N1, :V):
  SELECT CustomerId INTO :x1 FROM Account WHERE Name = :N1;
  UPDATE Checking SET Balance = Balance + :V WHERE CustomerId = :x1;
COMMIT;

TransactSavings [TS] (:N1, :V):
  SELECT CustomerId INTO :x1 FROM Account WHERE Name = :N1;
  UPDATE Savings SET Balance = Balance + :V WHERE CustomerId = :x1;
COMMIT;

-- Writes a check, with a penalty where both accounts together have not enough.
WriteCheck [WC] (:N1, :V):
  SELECT CustomerId INTO :x1 FROM Account WHERE Name = :N1;
  SELECT Balance INTO :a FROM Savings WHERE CustomerId = :x1;
  SELECT Balance INTO :b FROM Checking WHERE CustomerId = :x1;
  IF :a + :b < :V THEN
    :V = penalised(:V);
  END IF;
  UPDATE Checking SET Balance = Balance - :V WHERE CustomerId = :x1;
COMMIT;
