-- What workload/known's SmallBank does.
Balance (:name):
  SELECT custid INTO :id FROM account WHERE name = :name;
  SELECT bal, changes INTO :s, :sc FROM savings WHERE custid = :id;
  SELECT bal, changes INTO :c, :cc FROM checking WHERE custid = :id;
COMMIT;

DepositChecking (:name, :amount):
  SELECT custid INTO :id FROM account WHERE name = :name;
  UPDATE checking SET bal = bal + :amount, changes = changes + 1 WHERE custid = :id;
COMMIT;

TransactSavings (:name, :amount):
  SELECT custid INTO :id FROM account WHERE name = :name;
  SELECT bal, changes INTO :s, :sc FROM savings WHERE custid = :id;
  IF :s + :amount < 0 THEN ROLLBACK; END IF;
  UPDATE savings SET bal = bal + :amount, changes = changes + 1 WHERE custid = :id;
COMMIT;

Amalgamate (:from, :to):
  SELECT custid INTO :a FROM account WHERE name = :from;
  SELECT custid INTO :b FROM account WHERE name = :to;
  SELECT bal, changes INTO :s, :sc FROM savings WHERE custid = :a;
  SELECT bal, changes INTO :c, :cc FROM checking WHERE custid = :a;
  UPDATE savings SET bal = 0, changes = changes + 1 WHERE custid = :a;
  UPDATE checking SET bal = 0, changes = changes + 1 WHERE custid = :a;
  UPDATE checking SET bal = bal + :s + :c, changes = changes + 1 WHERE custid = :b;
COMMIT;

WriteCheck (:name, :amount):
  SELECT custid INTO :id FROM account WHERE name = :name;
  SELECT bal, changes INTO :s, :sc FROM savings WHERE custid = :id;
  SELECT bal, changes INTO :c, :cc FROM checking WHERE custid = :id;
  UPDATE checking SET bal = bal - :amount, changes = changes + 1 WHERE custid = :id;
COMMIT;
